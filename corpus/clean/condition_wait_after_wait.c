// The consumer waits once for real, then finds its second condition true without waiting: the loop has been seen
// before, and its condition variable is known from then.
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int produced;
int items[2];

static void produce(int number)
{
    items[number] = number + 1;
    pthread_mutex_lock(&lock);
    produced++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *producer(void *unused)
{
    step_wait(1);
    produce(0);
    produce(1);
    step_done(2);
    return unused;
}

static void consume(int number)
{
    pthread_mutex_lock(&lock);
    if (number == 0)
        step_done(1); // the producer cannot get the lock before the wait releases it
    while (produced <= number)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    items[number] *= 10;
}

static void *consumer(void *unused)
{
    consume(0);
    step_wait(2);
    consume(1);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", items[0] + items[1]);
    return 0;
}
