// The section that sets the flag goes on: it takes another lock, gives it back, and writes the message last. Correct, because
// who has seen the flag under the lock comes after all of that section.
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t statistics_lock = PTHREAD_MUTEX_INITIALIZER;
int ready, sent;
int message;

static void *producer(void *unused)
{
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_mutex_lock(&statistics_lock);
    sent++;
    pthread_mutex_unlock(&statistics_lock);
    message = 42;
    pthread_mutex_unlock(&lock);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    int seen = ready;
    pthread_mutex_unlock(&lock);
    if (seen)
        printf("%d\n", message);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
