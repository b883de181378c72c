/* Benchmark: the same number of accesses by any number of threads, to see what a thread costs a detector.
 *
 * Every thread reads a shared table, writes its own cells, and now and then takes a common lock; all threads are alive at
 * once. The work is divided among them, so that the accesses are the same whatever their number.
 *
 * usage: scaling [threads] [accesses]     prints how many accesses were made
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARED = 4096, OWN = 64, BETWEEN_LOCKS = 1024 };

static size_t threads = 2, accesses = 20000000;
static unsigned shared[SHARED];
static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long total;

static void *work(void *number)
{
    volatile unsigned *own = calloc(OWN, sizeof *own);
    size_t mine = accesses / threads;
    unsigned sum = 0;

    if (!own)
        exit(2);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < mine; i += 2) {
        sum += shared[(i + (size_t)number * 7) % SHARED];
        own[i % OWN] = sum;
        if (i % BETWEEN_LOCKS == 0) {
            pthread_mutex_lock(&lock);
            total += BETWEEN_LOCKS < mine - i ? BETWEEN_LOCKS : mine - i;
            pthread_mutex_unlock(&lock);
        }
    }
    free((void *)own);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        threads = strtoul(argv[1], NULL, 10);
    if (argc > 2)
        accesses = strtoul(argv[2], NULL, 10);
    pthread_t *handles = calloc(threads, sizeof *handles);
    pthread_attr_t small;

    for (size_t i = 0; i < SHARED; i++)
        shared[i] = (unsigned)i;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], &small, work, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    printf("%lu\n", total);
    return total == accesses / threads * threads ? 0 : 1;
}
