// The other order: the read comes first and the free after it, with nothing between them.
#include "steps.h"
#include "start.h"

volatile int *block;

static void *reader(void *unused)
{
    int seen = block[5]; // race: heap block
    step_done(1);
    return seen == 5 ? unused : NULL;
}

static void *owner(void *unused)
{
    step_wait(1);
    free((void *)block); // race: heap block
    return unused;
}

int main(void)
{
    block = malloc(16 * sizeof *block); // block: heap block
    for (int i = 0; i < 16; i++)
        block[i] = i;
    both(reader, owner);
    puts("done");
    return 0;
}
