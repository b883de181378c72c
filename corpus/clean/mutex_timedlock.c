// A timed lock that was got in time protects like any other.
// clean
#include "start.h"
#include <time.h>

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *count(void *unused)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 600;
    if (pthread_mutex_timedlock(&guard, &until) != 0)
        abort();
    counter++;
    pthread_mutex_unlock(&guard);
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
