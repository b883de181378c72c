// C11 threads: in glibc they call, or jump to, the pthread functions; each is one operation.
//
// watch: sync thread
// build: gcc -O2 -g -pthread
// build: gcc -O2 -g -pthread -static

#include "order.h"
#include <threads.h>
#include <time.h>

static mtx_t mutex;
static cnd_t ready;
static once_flag once = ONCE_FLAG_INIT;

// expect T2: thread-start by T1
static int other(void *argument)
{
    struct timespec past = {0, 0};
    int wrong = 0;
    wrong |= mtx_lock(&mutex) != thrd_success;              // expect T2: lock-requested mutex; lock-acquired mutex
    done(0);
    wrong |= cnd_wait(&ready, &mutex) != thrd_success;      // expect T2: condition-wait-begin ready mutex; condition-wait-end ready mutex woken
    wrong |= cnd_timedwait(&ready, &mutex, &past) != thrd_timedout; // expect T2: condition-wait-begin ready mutex; condition-wait-end ready mutex unwoken
    wrong |= mtx_unlock(&mutex) != thrd_success;            // expect T2: lock-released mutex
    done(1);
    await(2);
    wrong |= mtx_trylock(&mutex) != thrd_busy;              // expect T2: lock-requested mutex; lock-failed mutex
    wrong |= mtx_timedlock(&mutex, &past) != thrd_timedout; // expect T2: lock-requested mutex; lock-failed mutex
    thrd_exit(argument ? wrong : 9);                        // expect T2: thread-exit
}

static int third(void *argument)
{
    return argument == NULL;
}
// expect T3: thread-start by T1; thread-exit

static void body(void) {}

int main(void)                          // expect: thread-start
{
    thrd_t thread;
    int wrong;
    mtx_init(&mutex, mtx_timed);        // expect: lock-created mutex
    cnd_init(&ready);
    call_once(&once, body);             // expect: once-begin once; once-end once done; once-passed once
    call_once(&once, body);             // expect: once-passed once
    thrd_create(&thread, other, &steps); // expect: thread-create T2; thread-created T2
    await(0);
    mtx_lock(&mutex);                   // expect: lock-requested mutex; lock-acquired mutex
    cnd_signal(&ready);                 // expect: condition-signal ready
    mtx_unlock(&mutex);                 // expect: lock-released mutex
    await(1);
    mtx_trylock(&mutex);                // expect: lock-requested mutex; lock-acquired mutex
    cnd_broadcast(&ready);              // expect: condition-signal ready all
    done(2);
    thrd_join(thread, &wrong);          // expect: thread-joined T2
    mtx_unlock(&mutex);                 // expect: lock-released mutex
    thrd_create(&thread, third, NULL);  // expect: thread-create T3; thread-created T3
    thrd_detach(thread);                // expect: thread-detached T3
    cnd_destroy(&ready);
    mtx_destroy(&mutex);                // expect: lock-destroyed mutex
    return wrong;
}
// expect: thread-exit
