// A message goes from the first thread by way of the second to the third, each time under a lock and polled for: the
// second has not touched it, and the third comes after the first all the same.
// clean
#include "start.h"
#include <sched.h>

pthread_mutex_t in = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t out = PTHREAD_MUTEX_INITIALIZER;
int written, passed;
int message;

static int seen(pthread_mutex_t *lock, int *flag)
{
    pthread_mutex_lock(lock);
    int is = *flag;
    pthread_mutex_unlock(lock);
    return is;
}

static void set(pthread_mutex_t *lock, int *flag)
{
    pthread_mutex_lock(lock);
    *flag = 1;
    pthread_mutex_unlock(lock);
}

static void *first(void *unused)
{
    message = 42;
    set(&in, &written);
    return unused;
}

static void *second(void *unused)
{
    while (!seen(&in, &written))
        sched_yield();
    set(&out, &passed);
    return unused;
}

static void *third(void *unused)
{
    while (!seen(&out, &passed))
        sched_yield();
    printf("%d\n", message);
    return unused;
}

int main(void)
{
    pthread_t helper = start(second, NULL);
    both(first, third);
    finish(helper);
    return 0;
}
