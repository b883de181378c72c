// A flag under the lock says that there is a message; who finds it set takes it down. Correct: the section writes what it
// has read, as one that counts does, but leaves zero behind, and nothing would have been there had it come first.
// clean
#include "start.h"
#include <sched.h>

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int full;
int message;

static void *producer(void *unused)
{
    message = 42;
    pthread_mutex_lock(&lock);
    full = 1;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *consumer(void *unused)
{
    for (int seen = 0; !seen; sched_yield()) {
        pthread_mutex_lock(&lock);
        seen = full;
        full = 0;
        pthread_mutex_unlock(&lock);
    }
    printf("%d\n", message);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
