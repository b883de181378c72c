// sem_trywait found nothing, and the consumer reads all the same.
#include "steps.h"
#include "start.h"
#include <semaphore.h>

sem_t full;
int message;

static void *producer(void *unused)
{
    message = 42; // race: message
    step_wait(1);
    sem_post(&full);
    return unused;
}

static void *consumer(void *unused)
{
    sem_trywait(&full);
    message++; // race: message
    step_done(1);
    return unused;
}

int main(void)
{
    sem_init(&full, 0, 0);
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
