// Instructions of every width that have touched much memory of their own, and then bytes beside those of another thread.
// clean
#include "start.h"
#include <emmintrin.h>
#include <string.h>

enum { ROUNDS = 300, OWN = 64 };

__attribute__((aligned(64))) char one[64], two[64], four[64], eight[64], sixteen[64];

struct __attribute__((packed)) packed {
    short two;
    int four;
    long eight;
};

/* Where a round goes: memory of the caller's own, and in the last round the shared one. */
static char *place(char *own, int round, char *shared)
{
    return round == ROUNDS - 1 ? shared : own + round % OWN;
}

static void *wide(void *unused)
{
    static __thread __attribute__((aligned(64))) char own[2 * OWN];

    for (int i = 0; i < ROUNDS; i++) {
        *(volatile char *)place(own, i, one + 5) = 1;
        ((volatile struct packed *)place(own, i, two + 3))->two = 1;
        ((volatile struct packed *)(place(own + 8, i, four + 5) - 2))->four = 1;
        ((volatile struct packed *)(place(own + 8, i, eight + 9) - 6))->eight = 1;
        _mm_storeu_si128((__m128i *)place(own, i, sixteen + 21), _mm_set1_epi8(1));
    }
    return unused;
}

static void *narrow(void *unused)
{
    static __thread char own[2 * OWN];

    for (int i = 0; i < ROUNDS; i++) {
        *(volatile char *)place(own, i, one + 6) = 2;
        *(volatile char *)place(own, i, two + 5) = 2;
        *(volatile char *)place(own, i, four + 9) = 2;
        *(volatile char *)place(own, i, eight + 17) = 2;
        *(volatile char *)place(own, i, sixteen + 37) = 2;
    }
    return unused;
}

int main(void)
{
    both(wide, narrow);
    printf("%d\n", one[5] != 0);
    return 0;
}
