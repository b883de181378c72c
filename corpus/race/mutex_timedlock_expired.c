// A timed lock that ran out of time is not held; the program goes on as if it were.
#include "steps.h"
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *holder(void *unused)
{
    pthread_mutex_lock(&guard);
    counter++; // race: counter
    step_done(1);
    step_wait(2);
    pthread_mutex_unlock(&guard);
    return unused;
}

static void *hurried(void *unused)
{
    struct timespec until;

    step_wait(1);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec -= 1; // already over
    pthread_mutex_timedlock(&guard, &until);
    counter++; // race: counter
    step_done(2);
    return unused;
}

int main(void)
{
    both(holder, hurried);
    printf("%d\n", counter);
    return 0;
}
