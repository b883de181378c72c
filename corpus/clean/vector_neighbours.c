// Vector loads and stores next to each other, unaligned too.
// clean
#include "start.h"
#include <emmintrin.h>

__attribute__((aligned(16))) char bytes[64];

static void *low(void *unused)
{
    _mm_storeu_si128((__m128i *)(bytes + 3), _mm_set1_epi8(1));
    bytes[35] = 2;
    return unused;
}

static void *high(void *unused)
{
    bytes[2] = 3;
    _mm_storeu_si128((__m128i *)(bytes + 19), _mm_set1_epi8(4));
    return unused;
}

int main(void)
{
    both(low, high);
    printf("%d\n", bytes[3] + bytes[19]);
    return 0;
}
