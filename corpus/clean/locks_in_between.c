// The twin of predicted_locks_in_between.c: the same order, and the writes are inside the sections.
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
int shared;

static void *first(void *unused)
{
    pthread_mutex_lock(&log_lock);
    shared = 1;
    pthread_mutex_unlock(&log_lock);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&log_lock);
    shared = 2;
    pthread_mutex_unlock(&log_lock);
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", shared);
    return 0;
}
