// Published by a relaxed store: the flag is atomic, and orders nothing by the language's rules. On this processor the
// relaxed store is the same instruction as a release store, so a binary cannot tell the bug from the correct twin:
// a finding is right, silence is excused.
// undecidable: relaxed and release stores are the same instruction on x86-64
// needs: debug-info
#include "start.h"
#include <stdatomic.h>

atomic_int ready;
int message;

static void *producer(void *unused)
{
    message = 42; // suspected: message
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return unused;
}

static void *consumer(void *unused)
{
    while (!atomic_load_explicit(&ready, memory_order_relaxed))
        ;
    message++; // suspected: message
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
