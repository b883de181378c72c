// Loops that wait: leaving one around a condition wait is an event, whether it waited or not; so is each
// read of one that spins.
//
// watch: sync memory
// also: condition-loop-left
// build: gcc -O1 -g -pthread
// build: gcc -O1 -g -pthread -static

#include <pthread.h>
#include <sched.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cv = PTHREAD_COND_INITIALIZER;
static volatile int ready = 1;

int main(void)
{
    pthread_mutex_lock(&m);             // expect: lock-requested m; lock-acquired m
    while (!ready)                      // expect: read 4 ready
        pthread_cond_wait(&cv, &m);
    // expect: condition-loop-left cv
    pthread_mutex_unlock(&m);           // expect: lock-released m
    while (!ready)                      // expect: spin-read 4 ready
        sched_yield();
    return 0;
}
