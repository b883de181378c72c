// Peterson's lock with its two stores the wrong way round.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int wants[2], turn, inside;

static void *enter(void *argument)
{
    int me = argument != NULL, other = 1 - me;
    if (me)
        work(LATE);
    atomic_store(&turn, other); // the interest belongs first
    atomic_store(&wants[me], 1);
    while (atomic_load(&wants[other]) && atomic_load(&turn) == other)
        sched_yield();
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    atomic_store(&wants[me], 0);
    return NULL;
}

int main(void)
{
    pthread_t one = start(enter, NULL);
    pthread_t two = start(enter, &turn);
    finish(one);
    finish(two);
    return 0;
}
