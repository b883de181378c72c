// A named semaphore; sem_timedwait and sem_trywait, heeded.
// clean
#include "start.h"
#include <fcntl.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

sem_t *full;
sem_t *also_full;
int messages[2];

static void *producer(void *unused)
{
    messages[0] = 1;
    sem_post(full);
    messages[1] = 2;
    sem_post(also_full);
    return unused;
}

static void *consumer(void *unused)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 600;
    while (sem_timedwait(full, &until) != 0)
        ;
    messages[0]++;
    while (sem_trywait(also_full) != 0)
        ;
    messages[1]++;
    return unused;
}

int main(void)
{
    char name[2][64];
    sem_t *made[2];

    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "/raddle-corpus-%d-%d", (int)getpid(), i);
        made[i] = sem_open(name[i], O_CREAT | O_EXCL, 0600, 0);
        if (made[i] == SEM_FAILED)
            abort();
        sem_unlink(name[i]);
    }
    full = made[0];
    also_full = made[1];
    both(producer, consumer);
    printf("%d\n", messages[0] + messages[1]);
    return 0;
}
