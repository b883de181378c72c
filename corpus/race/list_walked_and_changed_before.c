// As in clean/list_walked_and_emptied.c, but what the second thread writes is what the first one has written before it took the lock to
// walk the list: that it would have done whoever came first.
#include "steps.h"
#include "start.h"

struct element {
    struct element *next;
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct element elements[2] = {{&elements[1], 1}, {NULL, 2}};
struct element *head = &elements[0];
int counted;

static void *walker(void *unused)
{
    int sum = 0;

    counted = 1; // race: counted, predicted
    pthread_mutex_lock(&lock);
    for (struct element *at = head; at; at = at->next)
        sum += at->value;
    pthread_mutex_unlock(&lock);
    step_done(1);
    printf("%d\n", sum);
    return unused;
}

static void *taker(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    struct element *mine = head;
    head = mine->next;
    pthread_mutex_unlock(&lock);
    mine->value = 3;
    counted = 2; // race: counted, predicted
    return unused;
}

int main(void)
{
    both(walker, taker);
    return 0;
}
