// A sixteen-byte vector store against one int inside it.
#include "start.h"
#include <emmintrin.h>

__attribute__((aligned(16))) int values[4];

static void *vector(void *unused)
{
    _mm_store_si128((__m128i *)values, _mm_set1_epi32(3)); // race: values
    return unused;
}

static void *scalar(void *unused)
{
    values[2] = 1; // race: values
    return unused;
}

int main(void)
{
    both(vector, scalar);
    printf("%d\n", values[0]);
    return 0;
}
