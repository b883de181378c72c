// A semaphore meant as a lock lets two in.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>
#include <semaphore.h>

static sem_t lock;
static volatile int counter;

static void *count(void *late)
{
    if (late)
        work(LATE);
    sem_wait(&lock);
    int seen = counter;
    counter = seen + 1;
    sem_post(&lock);
    return NULL;
}

int main(void)
{
    sem_init(&lock, 0, 2);
    pthread_t one = start(count, NULL);
    pthread_t other = start(count, &lock);
    finish(one);
    finish(other);
    assert(counter == 2);
    return 0;
}
