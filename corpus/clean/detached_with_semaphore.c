// A detached thread that says when it is done.
// clean
#include "start.h"
#include <semaphore.h>

sem_t done;
int result;

static void *compute(void *unused)
{
    result = 42;
    sem_post(&done);
    return unused;
}

int main(void)
{
    sem_init(&done, 0, 0);
    pthread_t thread = start(compute, NULL);
    pthread_detach(thread);
    while (sem_wait(&done) != 0)
        ;
    printf("%d\n", result);
    return 0;
}
