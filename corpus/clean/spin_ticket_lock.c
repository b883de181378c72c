// A ticket lock: fetch-and-add to draw a number, a spin until it is called, a plain store to call the next.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of atomics look like those of plain variables
#include "start.h"
#include <sched.h>
#include <stdatomic.h>

atomic_uint next_ticket, now_serving;
int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 20; i++) {
        unsigned mine = atomic_fetch_add_explicit(&next_ticket, 1, memory_order_relaxed);
        while (atomic_load_explicit(&now_serving, memory_order_acquire) != mine)
            sched_yield();
        counter++;
        atomic_store_explicit(&now_serving, mine + 1, memory_order_release);
    }
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
