// The first thread writes and then passes through a critical section about something else; the second passes
// through the same section afterwards and then writes. In this order, which is enforced, the lock orders the
// writes and every happens-before detector is silent; had the second been first, they would collide.
#include "steps.h"
#include "start.h"

pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
int shared;
int log_lines;

static void *first(void *unused)
{
    shared = 1; // race: shared, predicted
    pthread_mutex_lock(&log_lock);
    log_lines++;
    pthread_mutex_unlock(&log_lock);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&log_lock);
    log_lines++;
    pthread_mutex_unlock(&log_lock);
    shared = 2; // race: shared, predicted
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d %d\n", shared, log_lines);
    return 0;
}
