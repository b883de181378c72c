// One barrier a phase is not enough: a thread that is through may begin the next phase, and write, while its neighbour
// still reads this one.
#include "start.h"

enum { THREADS = 2, PHASES = 5 };

pthread_barrier_t barrier;
int cells[THREADS];

static void *worker(void *number)
{
    int me = *(int *)number;
    int sum = 0;

    for (int phase = 0; phase < PHASES; phase++) {
        cells[me] = phase; // race: cells
        pthread_barrier_wait(&barrier);
        sum += cells[(me + 1) % THREADS]; // race: cells
    }
    *(int *)number = sum;
    return NULL;
}

int main(void)
{
    int numbers[THREADS] = {0, 1};
    pthread_t first, second;

    pthread_barrier_init(&barrier, NULL, THREADS);
    first = start(worker, &numbers[0]);
    second = start(worker, &numbers[1]);
    finish(first);
    finish(second);
    printf("%d\n", numbers[0] + numbers[1] > 0);
    return 0;
}
