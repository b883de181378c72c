// The lock is destroyed and made again while a thread relies on it: two threads hold "the" lock at once.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock;
int counter;

static void *worker(void *unused)
{
    pthread_mutex_lock(&lock);
    counter++; // race: counter
    step_done(1);
    step_wait(2);
    return unused;
}

static void *restarter(void *unused)
{
    step_wait(1);
    pthread_mutex_init(&lock, NULL); // forgets that it is held
    pthread_mutex_lock(&lock);
    counter++; // race: counter
    step_done(2);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_mutex_init(&lock, NULL);
    both(worker, restarter);
    printf("%d\n", counter);
    return 0;
}
