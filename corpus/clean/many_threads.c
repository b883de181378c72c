// Three hundred threads, one after the other and many at once, each with its own cell and one common counter.
// clean
#include "start.h"

enum { AT_ONCE = 60, ROUNDS = 5 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int cells[AT_ONCE];
int counter;

static void *worker(void *cell)
{
    ++*(int *)cell;
    pthread_mutex_lock(&lock);
    counter++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[AT_ONCE];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++)
            threads[i] = start(worker, &cells[i]);
        for (int i = 0; i < AT_ONCE; i++)
            finish(threads[i]);
    }
    printf("%d\n", counter);
    return 0;
}
