// One thread increments the counter atomically, the other resets it with a plain store: mixed.
#include "start.h"

int counter;

static void *count(void *unused)
{
    __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST); // race: counter
    return unused;
}

static void *reset(void *unused)
{
    counter = 0; // race: counter
    return unused;
}

int main(void)
{
    pthread_t again;

    both(count, count);
    again = start(count, NULL);
    finish(start(reset, NULL));
    finish(again);
    printf("%d\n", counter <= 1);
    return 0;
}
