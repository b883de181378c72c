// Two hundred threads are alive at once; two of the last write the same variable under a lock, and two others one after the
// other.
// clean
#include "start.h"

enum { THREADS = 200 };

pthread_barrier_t all;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int value, other;

static void *work(void *number)
{
    size_t n = (size_t)number;

    pthread_barrier_wait(&all);
    if (n == 150 || n == 179) {
        pthread_mutex_lock(&lock);
        value = (int)n;
        pthread_mutex_unlock(&lock);
    }
    if (n == 100)
        other = 1;
    pthread_barrier_wait(&all);
    if (n == 129)
        other = 2;
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
    printf("%d %d\n", value > 0, other);
    return 0;
}
