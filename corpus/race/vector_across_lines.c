// A vector store that lies in two lines of the cache, against one byte in the second. The same instruction has stored across lines
// before, so that nothing about it is new but the memory.
#include "start.h"
#include <emmintrin.h>

__attribute__((aligned(64))) char bytes[128];

__attribute__((noinline)) static void store(char *at)
{
    _mm_storeu_si128((__m128i *)at, _mm_set1_epi8(1)); // race: bytes
}

static void *vector(void *unused)
{
    static __attribute__((aligned(64))) char own[64 * 9];
    for (int i = 0; i < 8; i++)
        store(own + 64 * i + 57);
    store(bytes + 57);
    return unused;
}

static void *scalar(void *unused)
{
    bytes[72] = 2; // race: bytes
    return unused;
}

int main(void)
{
    both(vector, scalar);
    printf("%d\n", bytes[57]);
    return 0;
}
