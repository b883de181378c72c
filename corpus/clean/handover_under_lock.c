// A message is written before a flag is set under the lock, and read by a thread that saw the flag under the
// lock. Correct, because whoever sees the flag comes after: not the order of locks as such says so, but what the
// one critical section read of the other.
// clean
#include "steps.h"
#include "start.h"
#include <sched.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int ready;
int message;

static void *producer(void *unused)
{
    message = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *consumer(void *unused)
{
    int seen = 0;

    while (!seen) {
        pthread_mutex_lock(&lock);
        seen = ready;
        pthread_mutex_unlock(&lock);
        sched_yield();
    }
    printf("%d\n", message);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
