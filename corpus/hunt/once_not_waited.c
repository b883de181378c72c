// Only one initialises, but the others do not wait until it has.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>
#include <stdatomic.h>

static atomic_int begun;
static atomic_int limit;

static int get_limit(void)
{
    int no = 0;
    if (atomic_compare_exchange_strong(&begun, &no, 1))
        atomic_store(&limit, 100);
    return atomic_load(&limit);
}

static void *user(void *late)
{
    if (late)
        work(LATE);
    assert(get_limit() == 100);
    return NULL;
}

int main(void)
{
    pthread_t one = start(user, NULL);
    pthread_t other = start(user, &one);
    finish(one);
    finish(other);
    return 0;
}
