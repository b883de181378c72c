// A thread gets a pointer to a local, is joined, and the frame is left; other functions then use the same stack. And the
// stacks of ended threads are used by later ones.
// clean
#include "start.h"

static void *writer(void *place)
{
    volatile int mine[64];

    for (int i = 0; i < 64; i++)
        mine[i] = i;
    *(volatile int *)place = mine[42];
    return NULL;
}

__attribute__((noinline)) static int with_thread(void)
{
    volatile int local[64];

    local[7] = 0;
    finish(start(writer, (void *)&local[7]));
    return local[7];
}

__attribute__((noinline)) static int without(void)
{
    volatile int local[64];
    int sum = 0;

    for (int i = 0; i < 64; i++)
        local[i] = 1;
    for (int i = 0; i < 64; i++)
        sum += local[i];
    return sum;
}

int main(void)
{
    int sum = 0;

    for (int i = 0; i < 5; i++)
        sum += with_thread() + without();
    printf("%d\n", sum);
    return 0;
}
