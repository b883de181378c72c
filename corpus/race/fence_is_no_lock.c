// Fences without any atomic variable between the threads order nothing. On x86-64 the fence may be a `lock or` of the
// own stack, which must not look like synchronisation.
#include "start.h"
#include <stdatomic.h>

int shared;

static void *first(void *unused)
{
    shared = 1; // race: shared
    atomic_thread_fence(memory_order_seq_cst);
    return unused;
}

static void *second(void *unused)
{
    atomic_thread_fence(memory_order_seq_cst);
    shared = 2; // race: shared
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", shared);
    return 0;
}
