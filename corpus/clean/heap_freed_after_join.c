// Freed by main when everybody is done.
// clean
#include "start.h"

int *block;

static void *reader(void *unused)
{
    int sum = 0;

    for (int i = 0; i < 16; i++)
        sum += block[i];
    return sum == 120 ? unused : NULL;
}

int main(void)
{
    block = malloc(16 * sizeof *block);
    for (int i = 0; i < 16; i++)
        block[i] = i;
    both(reader, reader);
    free(block);
    puts("done");
    return 0;
}
