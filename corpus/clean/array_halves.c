// Each thread has its half of the array, written with vector instructions at -O2.
// clean
#include "start.h"

int values[67];

static void *lower(void *unused)
{
    for (int i = 0; i < 33; i++)
        values[i] += i;
    return unused;
}

static void *upper(void *unused)
{
    for (int i = 33; i < 67; i++)
        values[i] += i;
    return unused;
}

int main(void)
{
    both(lower, upper);
    printf("%d\n", values[33]);
    return 0;
}
