// Two bit-fields that share a byte: writing one rewrites the other.
#include "start.h"

struct {
    unsigned one : 3;
    unsigned other : 5;
} flags;

static void *set_one(void *unused)
{
    flags.one = 1; // race: flags
    return unused;
}

static void *set_other(void *unused)
{
    flags.other = 1; // race: flags
    return unused;
}

int main(void)
{
    both(set_one, set_other);
    printf("%d\n", flags.one + flags.other > 0);
    return 0;
}
