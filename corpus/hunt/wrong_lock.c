// The same counter under two different locks.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER, wrong = PTHREAD_MUTEX_INITIALIZER;
static volatile int counter;

static void count(pthread_mutex_t *lock)
{
    pthread_mutex_lock(lock);
    int seen = counter;
    counter = seen + 1;
    pthread_mutex_unlock(lock);
}

static void *one(void *unused)
{
    count(&right);
    return unused;
}

static void *other(void *unused)
{
    work(LATE);
    count(&wrong);
    return unused;
}

int main(void)
{
    both(one, other);
    assert(counter == 2);
    return 0;
}
