// The semaphore is posted before the message is complete.
#include "start.h"
#include <semaphore.h>

sem_t full;
int message;

static void *producer(void *unused)
{
    sem_post(&full);
    message = 42; // race: message
    return unused;
}

static void *consumer(void *unused)
{
    while (sem_wait(&full) != 0)
        ;
    message++; // race: message
    return unused;
}

int main(void)
{
    sem_init(&full, 0, 0);
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
