// The flag is set before the message is written.
// needs: debug-info
// undecidable: without debug information an atomic load and store are plain moves; unoptimised, the loop around the load
// copies what it reads, which no hand-made wait does that could be told from other loops
#include "start.h"
#include <stdatomic.h>

atomic_int ready;
int message;

static void *producer(void *unused)
{
    atomic_store_explicit(&ready, 1, memory_order_release);
    message = 42; // race: message
    return unused;
}

static void *consumer(void *unused)
{
    while (!atomic_load_explicit(&ready, memory_order_acquire))
        ;
    message++; // race: message
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
