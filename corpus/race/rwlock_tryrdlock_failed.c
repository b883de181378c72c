// The read lock could not be had because a writer holds it, and the reader reads all the same.
#include "steps.h"
#include "start.h"

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int value;

static void *writer(void *unused)
{
    pthread_rwlock_wrlock(&lock);
    value = 1; // race: value
    step_done(1);
    step_wait(2);
    pthread_rwlock_unlock(&lock);
    return unused;
}

static void *reader(void *result)
{
    step_wait(1);
    pthread_rwlock_tryrdlock(&lock);
    *(int *)result = value; // race: value
    step_done(2);
    return NULL;
}

int main(void)
{
    int seen = 0;
    pthread_t first = start(writer, NULL);
    pthread_t second = start(reader, &seen);
    finish(first);
    finish(second);
    printf("%d\n", seen);
    return 0;
}
