// Two readers pass through the read side one after the other: that orders nothing between them, so the plain
// accesses around it race, in the full order too (helgrind and drd say so; gcc's ThreadSanitizer as well).
#include "steps.h"
#include "start.h"

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int configuration = 7;
int shared;

static int configured(void)
{
    int value;

    pthread_rwlock_rdlock(&lock);
    value = configuration;
    pthread_rwlock_unlock(&lock);
    return value;
}

static void *first(void *unused)
{
    shared = 1; // race: shared
    configured();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    configured();
    shared = 2; // race: shared
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", shared);
    return 0;
}
