// Written before the threads start, only read afterwards.
// clean
#include "start.h"

int table[64];

static void *reader(void *unused)
{
    int sum = 0;

    for (int round = 0; round < 10; round++)
        for (int i = 0; i < 64; i++)
            sum += table[i];
    return sum == 10 * 64 * 63 / 2 ? unused : NULL;
}

int main(void)
{
    pthread_t third;

    for (int i = 0; i < 64; i++)
        table[i] = i;
    third = start(reader, NULL);
    both(reader, reader);
    finish(third);
    printf("%d\n", table[63]);
    return 0;
}
