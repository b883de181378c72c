// Twenty phases: every thread writes its own cell and, after the barrier, reads its neighbour's; a second barrier ends the
// phase.
// clean
#include "start.h"

enum { THREADS = 3, PHASES = 20 };

pthread_barrier_t barrier;
int cells[THREADS];

static void *worker(void *number)
{
    int me = *(int *)number;
    int sum = 0;

    for (int phase = 0; phase < PHASES; phase++) {
        cells[me] = phase;
        pthread_barrier_wait(&barrier);
        sum += cells[(me + 1) % THREADS];
        pthread_barrier_wait(&barrier);
    }
    *(int *)number = sum;
    return NULL;
}

int main(void)
{
    int numbers[THREADS];
    pthread_t threads[THREADS];

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        threads[i] = start(worker, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        finish(threads[i]);
    printf("%d\n", numbers[0] + numbers[1] + numbers[2]);
    return 0;
}
