// Each takes the fork on the left, then the one on the right.
// fails: deadlock
#include "stagger.h"
#include "start.h"

enum { SEATS = 4 };
static pthread_mutex_t forks[SEATS];

static void *eat(void *argument)
{
    long seat = (long)argument;
    work(seat * LATE / 4);
    pthread_mutex_lock(&forks[seat]);
    pthread_mutex_lock(&forks[(seat + 1) % SEATS]);
    pthread_mutex_unlock(&forks[(seat + 1) % SEATS]);
    pthread_mutex_unlock(&forks[seat]);
    return NULL;
}

int main(void)
{
    pthread_t threads[SEATS];
    for (int i = 0; i < SEATS; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (long i = 0; i < SEATS; i++)
        threads[i] = start(eat, (void *)i);
    for (int i = 0; i < SEATS; i++)
        finish(threads[i]);
    return 0;
}
