// Mutexes: plain, trylock, timed, recursive, error-checking; held by one thread while another fails.
//
// watch: sync
// build: gcc -O0 -g -pthread
// build: gcc -O2 -g -pthread -fno-plt
// build: gcc -O2 -g -pthread -static
// build: gcc -O2 -pthread -s

#define _GNU_SOURCE
#include "order.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t made;
static pthread_mutex_t again;
static pthread_mutex_t strict;

static void *other(void *argument)
{
    struct timespec past = {0, 0};
    int wrong = 0;
    await(0);
    wrong |= pthread_mutex_trylock(&plain) != EBUSY;               // expect T2: lock-requested plain; lock-failed plain
    wrong |= pthread_mutex_timedlock(&plain, &past) != ETIMEDOUT;  // expect T2: lock-requested plain; lock-failed plain
    wrong |= pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &past) != ETIMEDOUT; // expect T2: lock-requested plain; lock-failed plain
    done(1);
    await(2);
    wrong |= pthread_mutex_timedlock(&plain, &past);               // expect T2: lock-requested plain; lock-acquired plain
    wrong |= pthread_mutex_unlock(&plain);                         // expect T2: lock-released plain
    wrong |= pthread_mutex_trylock(&plain);                        // expect T2: lock-requested plain; lock-acquired plain
    wrong |= pthread_mutex_unlock(&plain);                         // expect T2: lock-released plain
    done(3);
    return wrong ? argument : NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_mutexattr_t kind;
    void *wrong;
    int mine = 0;

    pthread_create(&thread, NULL, other, &mine);
    pthread_mutex_lock(&plain);                 // expect: lock-requested plain; lock-acquired plain
    done(0);
    await(1);
    pthread_mutex_unlock(&plain);               // expect: lock-released plain
    done(2);
    await(3);

    pthread_mutex_init(&made, NULL);            // expect: lock-created made
    pthread_mutex_lock(&made);                  // expect: lock-requested made; lock-acquired made
    pthread_mutex_unlock(&made);                // expect: lock-released made
    pthread_mutex_destroy(&made);               // expect: lock-destroyed made

    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&again, &kind);          // expect: lock-created again
    pthread_mutex_lock(&again);                 // expect: lock-requested again; lock-acquired again
    pthread_mutex_lock(&again);                 // expect: lock-requested again; lock-acquired again
    mine |= pthread_mutex_trylock(&again);      // expect: lock-requested again; lock-acquired again
    pthread_mutex_unlock(&again);               // expect: lock-released again
    pthread_mutex_unlock(&again);               // expect: lock-released again
    pthread_mutex_unlock(&again);               // expect: lock-released again

    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&strict, &kind);         // expect: lock-created strict
    pthread_mutex_lock(&strict);                // expect: lock-requested strict; lock-acquired strict
    mine |= pthread_mutex_lock(&strict) != EDEADLK; // expect: lock-requested strict; lock-failed strict
    pthread_mutex_unlock(&strict);              // expect: lock-released strict

    pthread_join(thread, &wrong);
    return wrong != NULL || mine;
}
