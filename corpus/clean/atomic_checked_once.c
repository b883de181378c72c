// The acquire load is not in a loop: if the flag is not set yet, the message is left alone. Release stores and
// acquire loads are plain moves, so only the type of the variable tells.
// clean
// needs: debug-info
// undecidable: without debug information a release store and an acquire load are plain moves; a program that did the
// same with plain variables would be racy
#include "steps.h"
#include "start.h"
#include <stdatomic.h>

atomic_int ready;
int message;

static void *producer(void *unused)
{
    message = 42; // suspected: message
    atomic_store_explicit(&ready, 1, memory_order_release); // suspected: ready
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    if (atomic_load_explicit(&ready, memory_order_acquire)) // suspected: ready
        message++; // suspected: message
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
