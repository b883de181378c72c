// A recursive lock released once of twice is still held.
// clean
#include "start.h"

pthread_mutex_t guard;
int counter;

static void *count(void *unused)
{
    pthread_mutex_lock(&guard);
    pthread_mutex_lock(&guard);
    pthread_mutex_unlock(&guard);
    counter++;
    pthread_mutex_unlock(&guard);
    return unused;
}

int main(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&guard, &recursive);
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
