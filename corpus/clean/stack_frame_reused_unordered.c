// The detached thread is done with the local of a frame when the frame is left (a semaphore says so); what the next
// functions do at that address is about new memory. The thread itself has ended without anybody waiting for its end.
// clean
#include "start.h"
#include <semaphore.h>

sem_t done;

static void *writer(void *place)
{
    *(volatile int *)place = 42;
    sem_post(&done);
    return NULL;
}

__attribute__((noinline)) static int with_thread(void)
{
    volatile int local[64];

    local[7] = 0;
    pthread_detach(start(writer, (void *)&local[7]));
    while (sem_wait(&done) != 0)
        ;
    return local[7];
}

__attribute__((noinline)) static int without(void)
{
    volatile int local[64];
    int sum = 0;

    for (int i = 0; i < 64; i++)
        local[i] = 1;
    for (int i = 0; i < 64; i++)
        sum += local[i];
    return sum;
}

int main(void)
{
    int sum = 0;

    sem_init(&done, 0, 0);
    for (int i = 0; i < 3; i++)
        sum += with_thread() + without();
    printf("%d\n", sum);
    return 0;
}
