// A store of sixty-four bytes, by one instruction where the processor has such, that lies in two lines of the cache, against one byte in
// the second. The same code has stored across lines before, so that nothing about it is new but the memory.
#include "start.h"
#include <immintrin.h>
#include <string.h>

__attribute__((aligned(64))) char bytes[192];

__attribute__((noinline, target("avx512f"))) static void store_wide(char *at)
{
    _mm512_storeu_si512(at, _mm512_set1_epi32(0x01010101)); // race: bytes
}

__attribute__((noinline)) static void store(char *at)
{
    if (__builtin_cpu_supports("avx512f"))
        store_wide(at);
    else
        memset(at, 1, 64); // race: bytes
}

static void *vector(void *unused)
{
    static __attribute__((aligned(64))) char own[64 * 10];
    for (int i = 0; i < 8; i++)
        store(own + 64 * i + 57);
    store(bytes + 57);
    return unused;
}

static void *scalar(void *unused)
{
    bytes[120] = 2; // race: bytes
    return unused;
}

int main(void)
{
    both(vector, scalar);
    printf("%d\n", bytes[57]);
    return 0;
}
