// A list whose elements know both their neighbours: who puts one in front writes into the one that was first, which its owner had
// filled in without the lock. Correct: it found that one in the head, where its owner had put it. The head is read and written, as
// a count is; but what is left there is an address. (The lists of tokio's waiters are such.)
// clean
#include "steps.h"
#include "start.h"

struct element {
    struct element *next, *previous;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct element elements[2];
struct element *head;

static void put(struct element *mine)
{
    mine->next = mine->previous = NULL;
    pthread_mutex_lock(&lock);
    mine->next = head;
    if (head)
        head->previous = mine;
    head = mine;
    pthread_mutex_unlock(&lock);
}

static void *first(void *unused)
{
    put(&elements[0]);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    put(&elements[1]);
    return unused;
}

int main(void)
{
    both(first, second);
    puts("done");
    return 0;
}
