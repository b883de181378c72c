// The same with memory straight from the kernel: unmapped by one thread, mapped at the same address by another.
// clean
#include "steps.h"
#include "start.h"
#include <sys/mman.h>

enum { SIZE = 1 << 16 };

static char *map(void *where)
{
    char *block = mmap(where, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (block == MAP_FAILED)
        abort();
    return block;
}

char *address;

static void *first(void *unused)
{
    char *block = map(address);

    block[100] = 1;
    munmap(block, SIZE);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    char *block;

    step_wait(1);
    block = map(address);
    block[100] = 2;
    munmap(block, SIZE);
    return unused;
}

int main(void)
{
    address = map(NULL);
    munmap(address, SIZE);
    both(first, second);
    puts("done");
    return 0;
}
