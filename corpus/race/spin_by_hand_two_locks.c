// Two hand-written locks, one variable.
#include "start.h"
#include <sched.h>

int one_lock, other_lock;
int counter;

static void take(int *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void give(int *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static void *first(void *unused)
{
    take(&one_lock);
    counter++; // race: counter
    give(&one_lock);
    return unused;
}

static void *second(void *unused)
{
    take(&other_lock);
    counter++; // race: counter
    give(&other_lock);
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", counter);
    return 0;
}
