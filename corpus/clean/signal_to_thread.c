// What was written before pthread_kill is seen by the handler in the other thread.
// clean
#include "start.h"
#include <semaphore.h>
#include <signal.h>

int message;
sem_t handled;

static void handler(int number)
{
    (void)number;
    message++;
    sem_post(&handled);
}

static void *target(void *unused)
{
    while (sem_wait(&handled) != 0)
        ;
    return unused;
}

int main(void)
{
    sem_init(&handled, 0, 0);
    signal(SIGUSR1, handler);
    pthread_t thread = start(target, NULL);
    message = 41;
    pthread_kill(thread, SIGUSR1);
    finish(thread);
    printf("%d\n", message);
    return 0;
}
