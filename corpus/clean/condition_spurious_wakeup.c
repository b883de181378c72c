// The consumer is woken twice: by a thread that only nudges it, and by the one that set the flag. The order that counts
// is with the thread whose write the condition read (Helgrind+, 5.3), and that thread's data is what is used.
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int message;

static void *producer(void *unused)
{
    step_wait(2);
    message = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&changed);
    return unused;
}

static void *nudge(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    step_done(2);
    return unused;
}

static void *consumer(void *unused)
{
    pthread_mutex_lock(&lock);
    step_done(1);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    message++;
    return unused;
}

int main(void)
{
    pthread_t helper = start(nudge, NULL);
    both(producer, consumer);
    finish(helper);
    printf("%d\n", message);
    return 0;
}
