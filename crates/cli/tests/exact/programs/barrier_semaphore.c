// Barriers, semaphores (a failed attempt acquires nothing) and spin locks.
//
// watch: sync
// build: gcc -O2 -g -pthread
// build: gcc -O2 -g -pthread -static
// build: gcc -O2 -pthread -s

#define _GNU_SOURCE
#include "order.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_barrier_t meeting;
static sem_t tokens;
static pthread_spinlock_t spin;

static void *other(void *argument)
{
    struct timespec past = {0, 0};
    int wrong = 0;
    pthread_barrier_wait(&meeting);                     // expect T2: barrier-enter meeting; barrier-leave meeting
    wrong |= sem_wait(&tokens);                         // expect T2: semaphore-acquired tokens
    wrong |= sem_trywait(&tokens) != -1;
    wrong |= sem_timedwait(&tokens, &past) != -1;
    done(0);
    wrong |= sem_wait(&tokens);                         // expect T2: semaphore-acquired tokens
    wrong |= pthread_spin_trylock(&spin) != EBUSY;      // expect T2: lock-requested spin; lock-failed spin
    done(1);
    wrong |= pthread_spin_lock(&spin);                  // expect T2: lock-requested spin; lock-acquired spin
    pthread_spin_unlock(&spin);                         // expect T2: lock-released spin
    return wrong ? argument : NULL;
}

int main(void)
{
    pthread_t thread;
    void *wrong;

    pthread_barrier_init(&meeting, NULL, 2);            // expect: barrier-created meeting 2
    sem_init(&tokens, 0, 1);                            // expect: semaphore-created tokens 1
    // The same code as pthread_spin_unlock in glibc: see the hook file.
    pthread_spin_init(&spin, 0);                        // expect: lock-released spin
    pthread_create(&thread, NULL, other, &steps);
    pthread_barrier_wait(&meeting);                     // expect: barrier-enter meeting; barrier-leave meeting
    await(0);
    pthread_spin_lock(&spin);                           // expect: lock-requested spin; lock-acquired spin
    sem_post(&tokens);                                  // expect: semaphore-post tokens
    await(1);
    pthread_spin_unlock(&spin);                         // expect: lock-released spin
    pthread_join(thread, &wrong);
    pthread_spin_destroy(&spin);                        // expect: lock-destroyed spin
    return wrong != NULL;
}
