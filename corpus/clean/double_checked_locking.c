// Double-checked locking done right: the pointer is atomic, stored with release and loaded with acquire.
// clean
// needs: debug-info
// undecidable: without debug information the acquire load is a plain move, like that of the broken twin
#include "steps.h"
#include "start.h"
#include <stdatomic.h>

struct table {
    int size;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(struct table *) instance;

static struct table *get(void)
{
    struct table *seen = atomic_load_explicit(&instance, memory_order_acquire); // suspected: instance
    if (!seen) {
        pthread_mutex_lock(&lock);
        seen = atomic_load_explicit(&instance, memory_order_relaxed);
        if (!seen) {
            seen = malloc(sizeof *seen);
            seen->size = 8; // suspected: heap table
            atomic_store_explicit(&instance, seen, memory_order_release); // suspected: instance
        }
        pthread_mutex_unlock(&lock);
    }
    return seen;
}

static void *first(void *unused)
{
    get();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    return get()->size == 8 ? unused : NULL; // suspected: heap table
}

int main(void)
{
    both(first, second);
    printf("%d\n", get()->size);
    return 0;
}
