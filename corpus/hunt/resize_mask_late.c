// A shrinking table publishes the new cells before the new mask: a lookup may use the one with the other.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static int large[16], small[4];
static int *volatile cells = large;
static volatile unsigned mask = 15;

static void *shrink(void *unused)
{
    cells = small;
    mask = 3;
    return unused;
}

static void *look_up(void *unused)
{
    work(LATE);
    int *here = cells;
    unsigned at = 13 & mask;
    assert(here == large || at < 4);
    return unused;
}

int main(void)
{
    both(shrink, look_up);
    return 0;
}
