// Each thread has its half of the array, but the first one goes one element too far.
#include "start.h"

int values[64];

static void *lower(void *unused)
{
    for (int i = 0; i <= 32; i++)
        ((volatile int *)values)[i] = 1; // race: values
    return unused;
}

static void *upper(void *unused)
{
    for (int i = 32; i < 64; i++)
        ((volatile int *)values)[i] = 2; // race: values
    return unused;
}

int main(void)
{
    both(lower, upper);
    printf("%d\n", values[32] > 0);
    return 0;
}
