// The signal comes before the consumer looks, so the wait never runs and there is no wake-up to be ordered by; the loop
// around the wait says what would have been (Helgrind+, Figure 5).
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int message;

static void *producer(void *unused)
{
    message = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
