// An allocator that goes by jemalloc's names, not by the C library's: a block that one thread has given back is another's, and new,
// though nothing that the program itself does orders the two.
// clean
// build: gcc -rdynamic
// needs: dynamic
#include "steps.h"
#include "start.h"

enum { SIZE = 64 };

static char room[SIZE];
static int is_free = 1;

/* One block, and no lock: what an allocator does to its own memory is its own business. */
__attribute__((noinline)) void *mallocx(size_t size, int flags)
{
    if (!is_free || size > SIZE || flags != 0)
        abort();
    is_free = 0;
    return room;
}

__attribute__((noinline)) void dallocx(void *block, int flags)
{
    is_free = block == room && flags == 0;
}

static void *first(void *unused)
{
    char *block = mallocx(SIZE, 0);

    block[7] = 2;
    dallocx(block, 0);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    char *block;

    step_wait(1);
    block = mallocx(SIZE, 0);
    block[7] = 4;
    dallocx(block, 0);
    return unused;
}

int main(void)
{
    both(first, second);
    puts("done");
    return 0;
}
