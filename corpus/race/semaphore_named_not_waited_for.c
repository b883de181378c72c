// Only one of the two messages is waited for, and used before the second is posted.
#include "steps.h"
#include "start.h"
#include <fcntl.h>
#include <semaphore.h>
#include <unistd.h>

sem_t *full;
int first_message, second_message;

static void *producer(void *unused)
{
    first_message = 1;
    sem_post(full);
    step_wait(1);
    second_message = 2; // race: second_message
    sem_post(full);
    return unused;
}

static void *consumer(void *unused)
{
    while (sem_wait(full) != 0)
        ;
    first_message++;
    second_message++; // race: second_message
    step_done(1);
    return unused;
}

int main(void)
{
    char name[64];

    snprintf(name, sizeof name, "/raddle-corpus-%d", (int)getpid());
    full = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    if (full == SEM_FAILED)
        abort();
    sem_unlink(name);
    both(producer, consumer);
    printf("%d %d\n", first_message, second_message > 0);
    return 0;
}
