// A message is written before a flag is set under the lock, and read by a thread that saw the flag under the
// lock. Correct, because whoever sees the flag comes after; but only the values say so, not the order of
// locks as such: a predicted finding is what the weak order must say here, an observed one would be wrong.
// clean
#include "steps.h"
#include "start.h"
#include <sched.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int ready;
int message;

static void *producer(void *unused)
{
    message = 42; // suspected: message, predicted
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
    printf("%d\n", message); // suspected: message, predicted
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
