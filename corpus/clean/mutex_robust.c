// A robust lock whose owner died is handed to the next thread with EOWNERDEAD: still a lock that was acquired.
// clean
#include "steps.h"
#include "start.h"
#include <errno.h>

pthread_mutex_t lock;
int counter;

static void *dies_with_it(void *unused)
{
    pthread_mutex_lock(&lock);
    counter++;
    step_done(1);
    return unused;
}

static void *inherits(void *unused)
{
    int error;

    step_wait(1);
    error = pthread_mutex_lock(&lock);

    if (error == EOWNERDEAD)
        pthread_mutex_consistent(&lock);
    else if (error != 0)
        abort();
    counter++;
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_mutexattr_t robust;
    pthread_mutexattr_init(&robust);
    pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &robust);
    both(dies_with_it, inherits);
    printf("%d\n", counter);
    return 0;
}
