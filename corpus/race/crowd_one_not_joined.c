// Sixty-four threads, all alive at once, read a table; main waits for all but one of them and changes it.
#include "start.h"

enum { THREADS = 64, LAST = 40 };

pthread_barrier_t all;
int table[4] = { 1, 2, 3, 4 };

static void *work(void *unused)
{
    pthread_barrier_wait(&all);
    return table[2] < 9 ? unused : NULL; // race: table
}

int main(void)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(work, NULL);
    for (int i = 0; i < THREADS; i++)
        if (i != LAST)
            finish(threads[i]);
    table[2] = 5; // race: table
    finish(threads[LAST]);
    printf("%d\n", table[2]);
    return 0;
}
