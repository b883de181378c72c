// A spin lock made of an exchange and a release store, on an int. What it protects is protected; that the store to the lock
// itself is meant to be atomic, the binary does not say: it may be called a mixed access.
// clean
// undecidable: the release store of a builtin is a plain move
#include "start.h"
#include <sched.h>

int lock;
int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 20; i++) {
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) // suspected: lock
            sched_yield();
        counter++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); // suspected: lock
    }
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
