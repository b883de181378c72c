// memcpy and memset of the two halves of a buffer, up to the byte.
// clean
#include "start.h"
#include <string.h>

char source[256], target[256];
volatile size_t half = 131; // no power of two, on purpose

static void *lower(void *unused)
{
    memcpy(target, source, half);
    memset(target, 1, half);
    return unused;
}

static void *upper(void *unused)
{
    memcpy(target + half, source + half, 256 - half);
    memset(target + half, 2, 256 - half);
    return unused;
}

int main(void)
{
    both(lower, upper);
    printf("%d\n", target[0] + target[255]);
    return 0;
}
