// Published by a release store, consumed after an acquire load in a spin loop: both are plain moves in the binary.
// clean
// needs: debug-info
// undecidable: without debug information an atomic load and store are plain moves; unoptimised, the loop around the load
// copies what it reads, which no hand-made wait does that could be told from other loops
#include "start.h"
#include <sched.h>
#include <stdatomic.h>

atomic_int ready;
int message;

static void *producer(void *unused)
{
    message = 42;
    atomic_store_explicit(&ready, 1, memory_order_release);
    return unused;
}

static void *consumer(void *unused)
{
    while (!atomic_load_explicit(&ready, memory_order_acquire))
        ;
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
