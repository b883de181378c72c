// Vector loads and stores that lie in two lines of the cache, again and again, and bytes right beside them.
// clean
#include "start.h"
#include <emmintrin.h>

enum { LINES = 8, LINE = 64 };

__attribute__((aligned(64))) char bytes[(LINES + 1) * LINE];

static void *vectors(void *unused)
{
    __m128i sum = _mm_setzero_si128();

    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LINES; i++) {
            __m128i *at = (__m128i *)(bytes + LINE * i + 57);
            sum = _mm_add_epi8(sum, _mm_loadu_si128(at));
            _mm_storeu_si128(at, sum);
        }
    return unused;
}

static void *neighbours(void *unused)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LINES; i++) {
            bytes[LINE * i + 56]++;
            bytes[LINE * i + 57 + 16]++;
        }
    return unused;
}

int main(void)
{
    both(vectors, neighbours);
    printf("%d\n", bytes[57] + bytes[56]);
    return 0;
}
