// One condition for "not full" and "not empty", signalled and not broadcast: the signal may wake one
// who cannot use it, and all wait.
// fails: deadlock
#include "start.h"
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int full;

static void set_full(int wanted)
{
    pthread_mutex_lock(&lock);
    while (full == wanted)
        pthread_cond_wait(&changed, &lock);
    full = wanted;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *producer(void *unused)
{
    set_full(1);
    return unused;
}

static void *consumer(void *unused)
{
    set_full(0);
    return unused;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        threads[i] = start(i % 2 ? consumer : producer, NULL);
        usleep(5000);
    }
    for (int i = 0; i < 4; i++)
        finish(threads[i]);
    return 0;
}
