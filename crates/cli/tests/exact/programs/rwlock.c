// Read/write locks, both sides. An unlock serves both, so it tells no side.
//
// watch: sync
// build: gcc -O2 -g -pthread

#define _GNU_SOURCE
#include "order.h"
#include <errno.h>
#include <pthread.h>

static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t made;

static void *other(void *argument)
{
    struct timespec past = {0, 0};
    int wrong = 0;
    await(0);
    wrong |= pthread_rwlock_tryrdlock(&gate);                   // expect T2: lock-requested gate shared; lock-acquired gate shared
    wrong |= pthread_rwlock_trywrlock(&gate) != EBUSY;          // expect T2: lock-requested gate; lock-failed gate
    wrong |= pthread_rwlock_timedwrlock(&gate, &past) != ETIMEDOUT; // expect T2: lock-requested gate; lock-failed gate
    wrong |= pthread_rwlock_unlock(&gate);                      // expect T2: lock-released gate either
    done(1);
    await(2);
    wrong |= pthread_rwlock_tryrdlock(&gate) != EBUSY;          // expect T2: lock-requested gate shared; lock-failed gate shared
    wrong |= pthread_rwlock_timedrdlock(&gate, &past) != ETIMEDOUT; // expect T2: lock-requested gate shared; lock-failed gate shared
    wrong |= pthread_rwlock_clockrdlock(&gate, CLOCK_REALTIME, &past) != ETIMEDOUT; // expect T2: lock-requested gate shared; lock-failed gate shared
    done(3);
    return wrong ? argument : NULL;
}

int main(void)
{
    pthread_t thread;
    void *wrong;

    pthread_create(&thread, NULL, other, &steps);
    pthread_rwlock_rdlock(&gate);       // expect: lock-requested gate shared; lock-acquired gate shared
    pthread_rwlock_rdlock(&gate);       // expect: lock-requested gate shared; lock-acquired gate shared
    done(0);
    await(1);
    pthread_rwlock_unlock(&gate);       // expect: lock-released gate either
    pthread_rwlock_unlock(&gate);       // expect: lock-released gate either
    pthread_rwlock_wrlock(&gate);       // expect: lock-requested gate; lock-acquired gate
    done(2);
    await(3);
    pthread_rwlock_unlock(&gate);       // expect: lock-released gate either
    pthread_rwlock_init(&made, NULL);   // expect: lock-created made
    pthread_rwlock_trywrlock(&made);    // expect: lock-requested made; lock-acquired made
    pthread_rwlock_unlock(&made);       // expect: lock-released made either
    pthread_rwlock_destroy(&made);      // expect: lock-destroyed made
    pthread_join(thread, &wrong);
    return wrong != NULL;
}
