// One thread walks a list under its lock, another takes an element out under the lock and uses it without. Correct: had the second
// come first, the first would not have met the element. (memcached's lists are such.)
// clean
#include "steps.h"
#include "start.h"

struct element {
    struct element *next;
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct element elements[2] = {{&elements[1], 1}, {NULL, 2}};
struct element *head = &elements[0];

static void *walker(void *unused)
{
    int sum = 0;

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
    return unused;
}

int main(void)
{
    both(walker, taker);
    return 0;
}
