// The same program as predicted_locks_in_between.c in the other order: the second thread's section comes
// first, nothing orders the writes, and every detector can see it.
#include "steps.h"
#include "start.h"

pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
int shared;
int log_lines;

static void *first(void *unused)
{
    step_wait(1);
    shared = 1; // race: shared
    pthread_mutex_lock(&log_lock);
    log_lines++;
    pthread_mutex_unlock(&log_lock);
    return unused;
}

static void *second(void *unused)
{
    pthread_mutex_lock(&log_lock);
    log_lines++;
    pthread_mutex_unlock(&log_lock);
    step_done(1);
    shared = 2; // race: shared
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d %d\n", shared, log_lines);
    return 0;
}
