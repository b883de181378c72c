// A block freed by one thread is allocated again by another, at the same address: it is new memory, though nothing that
// the program itself does orders the two. One arena, and a size that no per-thread cache keeps.
// clean
#include "steps.h"
#include "start.h"
#include <malloc.h>
#include <string.h>

enum { SIZE = 3000 };

static void *first(void *unused)
{
    char *block = malloc(SIZE);

    memset(block, 1, SIZE);
    block[7] = 2;
    free(block);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    char *block;

    step_wait(1);
    block = malloc(SIZE);
    memset(block, 3, SIZE);
    block[7] = 4;
    free(block);
    return unused;
}

int main(void)
{
    mallopt(M_ARENA_MAX, 1);
    both(first, second);
    puts("done");
    return 0;
}
