// A semaphore that starts at two lets two in at once. Both are let in before either posts.
#include "steps.h"
#include "start.h"
#include <semaphore.h>

sem_t two;
int counter;

static void *first(void *unused)
{
    sem_wait(&two);
    counter++; // race: counter
    step_done(1);
    step_wait(2);
    sem_post(&two);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    sem_wait(&two);
    counter++; // race: counter
    step_done(2);
    sem_post(&two);
    return unused;
}

int main(void)
{
    sem_init(&two, 0, 2);
    both(first, second);
    printf("%d\n", counter);
    return 0;
}
