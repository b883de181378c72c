// A thousand threads are alive at once and count under a lock; one of the last looks at the count without it.
#include "start.h"

enum { THREADS = 1000 };

pthread_barrier_t all;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int count;

static void *work(void *number)
{
    int seen = 0;

    pthread_barrier_wait(&all);
    if ((size_t)number == 990) {
        seen = count; // race: count
    } else {
        pthread_mutex_lock(&lock);
        count++; // race: count
        pthread_mutex_unlock(&lock);
    }
    pthread_barrier_wait(&all);
    return seen < 0 ? number : NULL;
}

int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t small;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    pthread_barrier_init(&all, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &small, work, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < THREADS; i++)
        finish(threads[i]);
    printf("%d\n", count);
    return 0;
}
