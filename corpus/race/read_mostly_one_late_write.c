// Many reads by many threads, and one write by one of them at its very end.
#include "start.h"

int table[64];

static int sum_up(void)
{
    int sum = 0;

    for (int i = 0; i < 64; i++)
        sum += table[i]; // race: table
    return sum;
}

static void *reader(void *unused)
{
    return sum_up() > 100 ? NULL : unused;
}

static void *updater(void *unused)
{
    if (sum_up() < 100)
        table[7] = 1; // race: table
    return unused;
}

int main(void)
{
    pthread_t third = start(reader, NULL);
    both(reader, updater);
    finish(third);
    printf("%d\n", table[7]);
    return 0;
}
