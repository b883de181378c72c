// The flag that the condition is about is set without the lock: the reader holds it, the writer does not.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;

static void *producer(void *unused)
{
    step_wait(1);
    ready = 1; // race: ready
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *consumer(void *unused)
{
    pthread_mutex_lock(&lock);
    step_done(1);
    while (!ready) // race: ready
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
