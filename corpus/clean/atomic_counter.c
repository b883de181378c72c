// C11 atomics: a counter both threads increment.
// clean
#include "start.h"
#include <stdatomic.h>

atomic_int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 100; i++)
        atomic_fetch_add(&counter, 1);
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
