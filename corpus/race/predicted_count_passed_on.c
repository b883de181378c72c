// Each thread counts under the lock and goes by the count it got, which is never the last. The lock orders them in this
// run; what they do with the variable before and afterwards is unprotected.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int tickets = 10;
int shared;

static int ticket(void)
{
    pthread_mutex_lock(&lock);
    int mine = --tickets;
    pthread_mutex_unlock(&lock);
    return mine;
}

static void *first(void *unused)
{
    shared = 1; // race: shared, predicted
    if (ticket() == 0)
        abort();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    if (ticket() == 0)
        abort();
    shared = 2; // race: shared, predicted
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d %d\n", shared, tickets);
    return 0;
}
