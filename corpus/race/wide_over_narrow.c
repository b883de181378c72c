// One thread writes eight bytes at once, the other one of them.
#include "start.h"
#include <stdint.h>

union {
    uint64_t word;
    uint8_t bytes[8];
} shared;

static void *wide(void *unused)
{
    shared.word = 0x0101010101010101; // race: shared
    return unused;
}

static void *narrow(void *unused)
{
    shared.bytes[5] = 2; // race: shared
    return unused;
}

int main(void)
{
    both(wide, narrow);
    printf("%d\n", shared.bytes[0]);
    return 0;
}
