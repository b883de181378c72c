// A sequence lock done by the book: the data is atomic too, with relaxed accesses.
// clean
// needs: debug-info
// undecidable: relaxed accesses are plain moves; without the types the data looks plain
#include "start.h"
#include <stdatomic.h>

atomic_uint sequence;
atomic_int first_half, second_half;

static void *writer(void *unused)
{
    atomic_fetch_add(&sequence, 1);
    atomic_store_explicit(&first_half, 1, memory_order_relaxed); // suspected: first_half
    atomic_store_explicit(&second_half, 1, memory_order_relaxed); // suspected: second_half
    atomic_fetch_add(&sequence, 1);
    return unused;
}

static void *reader(void *result)
{
    unsigned before;
    int a, b;

    do {
        before = atomic_load(&sequence);
        a = atomic_load_explicit(&first_half, memory_order_relaxed); // suspected: first_half
        b = atomic_load_explicit(&second_half, memory_order_relaxed); // suspected: second_half
        atomic_thread_fence(memory_order_acquire);
    } while (before % 2 || before != atomic_load_explicit(&sequence, memory_order_relaxed));
    *(int *)result = a == b;
    return NULL;
}

int main(void)
{
    int consistent = 0;
    pthread_t first = start(writer, NULL);
    pthread_t second = start(reader, &consistent);
    finish(first);
    finish(second);
    printf("%d\n", consistent);
    return 0;
}
