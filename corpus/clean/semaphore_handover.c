// The semaphore hands the message over: post orders before wait.
// clean
#include "start.h"
#include <semaphore.h>

sem_t full;
int message;

static void *producer(void *unused)
{
    message = 42;
    sem_post(&full);
    return unused;
}

static void *consumer(void *unused)
{
    while (sem_wait(&full) != 0)
        ;
    message++;
    return unused;
}

int main(void)
{
    sem_init(&full, 0, 0);
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
