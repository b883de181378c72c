// A reader of a sequence lock looks at the number before reading and not after.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>
#include <stdatomic.h>

static atomic_uint sequence;
static atomic_int low = 1, high = 1;

static void *writer(void *unused)
{
    work(LATE);
    atomic_fetch_add(&sequence, 1);
    atomic_store(&low, 2);
    atomic_store(&high, 2);
    atomic_fetch_add(&sequence, 1);
    return unused;
}

static void *reader(void *unused)
{
    if (atomic_load(&sequence) % 2 == 0) {
        int one = atomic_load(&low), two = atomic_load(&high);
        assert(one == two);
    }
    return unused;
}

int main(void)
{
    both(reader, writer);
    return 0;
}
