// The same, with the wait inside a function of its own: the loop and the wait are in different functions.
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int message;

__attribute__((noinline)) static void wait_for_change(void)
{
    if (pthread_cond_wait(&changed, &lock) != 0)
        abort();
}

static void *producer(void *unused)
{
    message = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    while (!ready)
        wait_for_change();
    pthread_mutex_unlock(&lock);
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
