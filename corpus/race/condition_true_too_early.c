// The condition is made true first and the message written after it, before the signal. The consumer, who finds the
// condition true without waiting, is ordered after what came before the condition's write, and not after the message.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int message;

static void *producer(void *unused)
{
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_mutex_unlock(&lock);
    message = 42; // race: message
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
    message++; // race: message
    step_done(2);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
