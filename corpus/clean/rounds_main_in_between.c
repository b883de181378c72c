// Rounds of threads, each joined before main goes on with what they wrote, and more of them than code is built anew for.
// clean
#include "start.h"

static int sum, half[2];

static void *first(void *unused)
{
    half[0] = sum + 1;
    return unused;
}

static void *second(void *unused)
{
    half[1] = sum + 2;
    return unused;
}

int main(void)
{
    for (int round = 0; round < 8; round++) {
        both(first, second);
        sum = half[0] + half[1];
    }
    printf("%d\n", sum);
    return 0;
}
