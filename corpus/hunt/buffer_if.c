// `if` where `while` belongs: a consumer that comes by takes the item the woken one was promised.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int count;

static void put(void)
{
    pthread_mutex_lock(&lock);
    count++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

static void *consumer(void *late)
{
    if (late)
        work(5 * LATE);
    pthread_mutex_lock(&lock);
    if (count == 0)
        pthread_cond_wait(&filled, &lock);
    assert(count > 0);
    count--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t one = start(consumer, NULL);
    pthread_t other = start(consumer, &lock);
    work(LATE);
    put();
    put();
    finish(one);
    finish(other);
    return 0;
}
