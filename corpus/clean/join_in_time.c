// Handed over at creation, handed back at the join; through a chain of threads too.
// clean
#include "start.h"

int value;

static void *inner(void *unused)
{
    value *= 2;
    return unused;
}

static void *outer(void *unused)
{
    value += 1;
    finish(start(inner, NULL));
    value += 1;
    return unused;
}

int main(void)
{
    value = 20;
    finish(start(outer, NULL));
    printf("%d\n", value);
    return 0;
}
