// Two variables that belong together, written one after the other.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static volatile int a, b;

static void *set(void *unused)
{
    a = 1;
    b = -1;
    return unused;
}

static void *check(void *unused)
{
    work(LATE);
    int seen_a = a, seen_b = b;
    assert((seen_a == 0 && seen_b == 0) || (seen_a == 1 && seen_b == -1));
    return unused;
}

int main(void)
{
    pthread_t setter = start(set, NULL);
    pthread_t again = start(set, NULL);
    pthread_t checker = start(check, NULL);
    finish(setter);
    finish(again);
    finish(checker);
    return 0;
}
