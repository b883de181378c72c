// A writer's section in one thread, a reader's in the next: the lock orders them in this run, and the accesses around
// are unprotected: predicted.
#include "steps.h"
#include "start.h"

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int configuration;
int shared;

static void *first(void *unused)
{
    shared = 1; // race: shared, predicted
    pthread_rwlock_wrlock(&lock);
    configuration = 7;
    pthread_rwlock_unlock(&lock);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    int value;

    step_wait(1);
    pthread_rwlock_rdlock(&lock);
    value = configuration;
    pthread_rwlock_unlock(&lock);
    shared = value; // race: shared, predicted
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", shared);
    return 0;
}
