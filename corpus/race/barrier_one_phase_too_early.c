// Each thread fills its half before the barrier; one of them reads the other's half before it, too.
#include "start.h"

pthread_barrier_t barrier;
int left, right;

static void *worker_left(void *unused)
{
    left = 1;
    right++; // race: right
    pthread_barrier_wait(&barrier);
    return unused;
}

static void *worker_right(void *unused)
{
    right = 2; // race: right
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    both(worker_left, worker_right);
    printf("%d %d\n", left, right > 0);
    return 0;
}
