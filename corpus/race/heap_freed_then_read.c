// A block is freed while another thread still reads it, and reads it afterwards: the free is a write that races.
#include "steps.h"
#include "start.h"

volatile int *block;

static void *owner(void *unused)
{
    free((void *)block); // race: heap block
    step_done(1);
    return unused;
}

static void *late_reader(void *unused)
{
    step_wait(1);
    return block[5] == 77 ? NULL : unused; // race: heap block
}

int main(void)
{
    block = malloc(16 * sizeof *block); // block: heap block
    for (int i = 0; i < 16; i++)
        block[i] = i;
    both(owner, late_reader);
    puts("done");
    return 0;
}
