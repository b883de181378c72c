// The life of threads: creation, names, joining, detaching, leaving early, cancellation.
//
// watch: thread
// build: gcc -O2 -g -pthread
// build: gcc -O2 -g -pthread -static
// build: gcc -O2 -pthread -s

#define _GNU_SOURCE
#include "order.h"
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

static void *plain(void *argument)      // expect T2: thread-start by T1
{
    pthread_setname_np(pthread_self(), "worker");   // expect T2: thread-name worker
    prctl(PR_SET_NAME, "renamed");      // expect T2: thread-name renamed
    return argument;
}                                       // expect T2: thread-exit

static void *early(void *argument)      // expect T3: thread-start by T1
{
    pthread_exit(argument);             // expect T3: thread-exit
}

static void *cancelled(void *argument)  // expect T4: thread-start by T1
{
    done(0);
    for (;;)
        pause();
    return argument;
}                                       // expect T4: thread-exit

static void *grandchild(void *argument) // expect T6: thread-start by T5; thread-exit
{
    return argument;
}

static void *parent(void *argument)     // expect T5: thread-start by T1
{
    pthread_t child;
    pthread_create(&child, NULL, grandchild, NULL); // expect T5: thread-create T6; thread-created T6
    pthread_join(child, NULL);          // expect T5: thread-joined T6
    return argument;                    // expect T5: thread-exit
}

static void *detached(void *argument)   // expect T7: thread-start by T1
{
    await(1);
    done(2);
    return argument;                    // expect T7: thread-exit
}

static void *last(void *argument)       // expect T8: thread-start by T1
{
    pthread_t *main_thread = argument;
    pthread_join(*main_thread, NULL);   // expect T8: thread-joined T1
    exit(0);                            // expect T8: thread-exit
}

int main(void)                          // expect: thread-start
{
    static pthread_t self;
    pthread_t thread;
    void *result;
    self = pthread_self();
    pthread_setname_np(self, "leader"); // expect: thread-name leader

    pthread_create(&thread, NULL, plain, &self);    // expect: thread-create T2; thread-created T2
    pthread_join(thread, &result);      // expect: thread-joined T2
    if (result != &self)
        return 1;

    pthread_create(&thread, NULL, early, &self);    // expect: thread-create T3; thread-created T3
    pthread_timedjoin_np(thread, &result, &(struct timespec){.tv_sec = 1L << 40}); // expect: thread-joined T3

    pthread_create(&thread, NULL, cancelled, NULL); // expect: thread-create T4; thread-created T4
    await(0);
    pthread_cancel(thread);             // expect: thread-cancelled T4
    pthread_join(thread, &result);      // expect: thread-joined T4
    if (result != PTHREAD_CANCELED)
        return 2;

    pthread_create(&thread, NULL, parent, NULL);    // expect: thread-create T5; thread-created T5
    pthread_join(thread, NULL);         // expect: thread-joined T5

    pthread_create(&thread, NULL, detached, NULL);  // expect: thread-create T7; thread-created T7
    pthread_detach(thread);             // expect: thread-detached T7
    done(1);
    await(2);

    pthread_create(&thread, NULL, last, &self);     // expect: thread-create T8; thread-created T8
    pthread_exit(NULL);                 // expect: thread-exit
}
