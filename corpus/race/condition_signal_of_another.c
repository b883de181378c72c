// Two producers, two flags, one condition variable. The consumer waits for the first producer's flag; the second
// producer's signal, which comes last, has nothing to do with it, and does not order the second's data.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int first_ready, second_ready;
int first_item, second_item;

static void *first_producer(void *unused)
{
    step_wait(1);
    first_item = 1;
    pthread_mutex_lock(&lock);
    first_ready = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *second_producer(void *unused)
{
    step_wait(1);
    second_item = 2; // race: second_item, either
    pthread_mutex_lock(&lock);
    second_ready = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *consumer(void *unused)
{
    pthread_mutex_lock(&lock);
    step_done(1);
    while (!first_ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    first_item++;
    second_item++; // race: second_item, either
    return unused;
}

int main(void)
{
    pthread_t helper = start(first_producer, NULL);
    both(second_producer, consumer);
    finish(helper);
    printf("%d %d %d\n", first_item, second_item, second_ready);
    return 0;
}
