// The producer goes on changing an item after it has put it into the queue.
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
int *queued;

static void *producer(void *unused)
{
    int *item = malloc(sizeof *item); // block: heap item
    *item = 1;
    pthread_mutex_lock(&lock);
    queued = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
    *item = 2; // race: heap item
    return unused;
}

static void *consumer(void *unused)
{
    int *item;

    pthread_mutex_lock(&lock);
    while (!queued)
        pthread_cond_wait(&not_empty, &lock);
    item = queued;
    pthread_mutex_unlock(&lock);
    *item += 10; // race: heap item
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", *queued > 0);
    return 0;
}
