// A spin lock made of an exchange and a plain release store.
// clean
#include "start.h"
#include <sched.h>

int lock;
int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 20; i++) {
        while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
            sched_yield();
        counter++;
        __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
    }
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
