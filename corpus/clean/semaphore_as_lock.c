// A semaphore that starts at one is a lock.
// clean
#include "start.h"
#include <semaphore.h>

sem_t one;
int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 20; i++) {
        while (sem_wait(&one) != 0)
            ;
        counter++;
        sem_post(&one);
    }
    return unused;
}

int main(void)
{
    sem_init(&one, 0, 1);
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
