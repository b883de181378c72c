// Two pairs of threads, a barrier each. A barrier orders those who meet at it, not the other pair.
#include "start.h"

pthread_barrier_t one_barrier, other_barrier;
int shared;

static void *idle_one(void *unused) { pthread_barrier_wait(&one_barrier); return unused; }
static void *idle_other(void *unused) { pthread_barrier_wait(&other_barrier); return unused; }

static void *first(void *unused)
{
    shared++; // race: shared
    pthread_barrier_wait(&one_barrier);
    return unused;
}

static void *second(void *unused)
{
    pthread_barrier_wait(&other_barrier);
    shared++; // race: shared
    return unused;
}

int main(void)
{
    pthread_t helpers[2];

    pthread_barrier_init(&one_barrier, NULL, 2);
    pthread_barrier_init(&other_barrier, NULL, 2);
    helpers[0] = start(idle_one, NULL);
    helpers[1] = start(idle_other, NULL);
    both(first, second);
    finish(helpers[0]);
    finish(helpers[1]);
    printf("%d\n", shared);
    return 0;
}
