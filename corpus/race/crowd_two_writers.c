// Two hundred threads are alive at once, and two of the last write the same variable.
#include "start.h"

enum { THREADS = 200 };

pthread_barrier_t all;
int value;

static void *work(void *number)
{
    size_t n = (size_t)number;

    pthread_barrier_wait(&all);
    if (n == 150 || n == 179)
        value = (int)n; // race: value
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&all, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = start(work, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        finish(threads[i]);
    printf("%d\n", value > 0);
    return 0;
}
