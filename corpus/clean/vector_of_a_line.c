// Loads and stores of sixty-four bytes, by one instruction where the processor has such, at the beginning of a line of the cache and
// across two, and bytes right beside them.
// clean
#include "start.h"
#include <immintrin.h>
#include <string.h>

enum { PLACES = 6, APART = 192 };

__attribute__((aligned(64))) char bytes[PLACES * APART];

__attribute__((noinline, target("avx512f"))) static void move_wide(char *to, const char *from)
{
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
}

__attribute__((noinline)) static void move(char *to, const char *from)
{
    if (__builtin_cpu_supports("avx512f"))
        move_wide(to, from);
    else
        memcpy(to, from, 64);
}

/* Another place in a line each time, the first at its beginning. */
static int place(int i)
{
    return APART * i + 64 + 9 * i;
}

static void *vectors(void *unused)
{
    for (int round = 0; round < 3; round++)
        for (int i = 1; i < PLACES; i++) {
            move(bytes + place(0), bytes + place(i));
            move(bytes + place(i), bytes + place(0));
        }
    return unused;
}

static void *neighbours(void *unused)
{
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < PLACES; i++) {
            bytes[place(i) - 1]++;
            bytes[place(i) + 64]++;
        }
    return unused;
}

int main(void)
{
    both(vectors, neighbours);
    printf("%d\n", bytes[place(1)] + bytes[place(1) - 1]);
    return 0;
}
