// The producer signals after it has unlocked, and the consumer comes in between: it finds the condition true before
// anybody has signalled. Who wrote what its loop tests, under the same lock, comes first all the same.
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
    pthread_mutex_unlock(&lock);
    step_done(1);
    step_wait(2);
    pthread_cond_signal(&changed);
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
    step_done(2);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
