// During the wait the lock is free: what was read under it before the wait is not what is there after, and a write
// without the lock in between collides with both.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int total;

static void *waiter(void *unused)
{
    pthread_mutex_lock(&lock);
    total++; // race: total
    step_done(1);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *other(void *unused)
{
    step_wait(1);
    total += 10; // race: total
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    both(waiter, other);
    printf("%d\n", total);
    return 0;
}
