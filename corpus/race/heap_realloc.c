// A block is moved by realloc while another thread holds the old pointer.
#include "steps.h"
#include "start.h"

volatile char *block;

static void *grower(void *unused)
{
    char *moved = realloc((char *)block, 1 << 20); // race: heap block
    step_done(1);
    return moved ? unused : NULL;
}

static void *reader(void *unused)
{
    volatile char *mine = block;

    step_wait(1);
    return mine[5] == 77 ? NULL : unused; // race: heap block
}

int main(void)
{
    block = calloc(1, 64); // block: heap block
    both(grower, reader);
    puts("done");
    return 0;
}
