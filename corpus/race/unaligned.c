// A four-byte access at an odd address that crosses a cell of eight, against a byte in its second part.
#include "start.h"
#include <string.h>

__attribute__((aligned(16))) char bytes[16];

struct __attribute__((packed)) at_six {
    char skipped[6];
    int value;
};

static void *crossing(void *unused)
{
    ((volatile struct at_six *)bytes)->value = 7; // race: bytes
    return unused;
}

static void *single(void *unused)
{
    bytes[8] = 1; // race: bytes
    return unused;
}

int main(void)
{
    both(crossing, single);
    printf("%d\n", bytes[6] == 7);
    return 0;
}
