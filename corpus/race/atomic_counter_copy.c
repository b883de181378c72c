// The counter is atomic, the copy of it that both threads keep is not.
#include "start.h"
#include <stdatomic.h>

atomic_int counter;
int last_seen;

static void *count(void *unused)
{
    int mine = atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
    last_seen = mine; // race: last_seen
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", last_seen >= 0);
    return 0;
}
