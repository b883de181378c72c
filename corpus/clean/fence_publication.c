// Relaxed accesses with fences around them: a release fence before the store, an acquire fence after the load.
// clean
// needs: debug-info
// undecidable: without debug information an atomic load and store are plain moves; unoptimised, the loop around the load
// copies what it reads, which no hand-made wait does that could be told from other loops
#include "start.h"
#include <stdatomic.h>

atomic_int ready;
int message;

static void *producer(void *unused)
{
    message = 42;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return unused;
}

static void *consumer(void *unused)
{
    while (!atomic_load_explicit(&ready, memory_order_relaxed))
        ;
    atomic_thread_fence(memory_order_acquire);
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
