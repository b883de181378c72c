// Condition variables: a wait that is signalled, one that is broadcast to, one that times out.
//
// The waiter says by a pipe that it holds the mutex; whoever then gets the mutex knows it waits.
//
// watch: sync
// build: gcc -O2 -g -pthread
// build: gcc -O2 -pthread -s

#include "order.h"
#include <errno.h>
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

static void *other(void *argument)
{
    struct timespec past = {0, 0};
    int wrong = 0;
    wrong |= pthread_mutex_lock(&mutex);                // expect T2: lock-requested mutex; lock-acquired mutex
    done(0);
    wrong |= pthread_cond_wait(&ready, &mutex);         // expect T2: condition-wait-begin ready mutex; condition-wait-end ready mutex woken
    done(1);
    wrong |= pthread_cond_wait(&ready, &mutex);         // expect T2: condition-wait-begin ready mutex; condition-wait-end ready mutex woken
    wrong |= pthread_cond_timedwait(&ready, &mutex, &past) != ETIMEDOUT; // expect T2: condition-wait-begin ready mutex; condition-wait-end ready mutex unwoken
    wrong |= pthread_mutex_unlock(&mutex);              // expect T2: lock-released mutex
    return wrong ? argument : NULL;
}

int main(void)
{
    pthread_t thread;
    void *wrong;

    pthread_create(&thread, NULL, other, &steps);
    await(0);
    pthread_mutex_lock(&mutex);                         // expect: lock-requested mutex; lock-acquired mutex
    pthread_cond_signal(&ready);                        // expect: condition-signal ready
    pthread_mutex_unlock(&mutex);                       // expect: lock-released mutex
    await(1);
    pthread_mutex_lock(&mutex);                         // expect: lock-requested mutex; lock-acquired mutex
    pthread_cond_broadcast(&ready);                     // expect: condition-signal ready all
    pthread_mutex_unlock(&mutex);                       // expect: lock-released mutex
    pthread_join(thread, &wrong);
    return wrong != NULL;
}
