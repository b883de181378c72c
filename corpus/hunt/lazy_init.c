// Made at first use, by whoever finds it not made yet: two may.
// fails: abort
#include "stagger.h"
#include "start.h"

static int cells[2];
static int *volatile instance;
static int made;

static int *get(void)
{
    if (!instance) {
        instance = &cells[__atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST)];
    }
    return instance;
}

static void *early(void *unused)
{
    get();
    return unused;
}

static void *late(void *unused)
{
    work(LATE);
    get();
    return unused;
}

int main(void)
{
    both(early, late);
    if (made != 1)
        abort();
    return 0;
}
