// Two consumers: "is there one?" and "give me one" are two calls.
// fails: abort
#include "stagger.h"
#include "start.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int items = 1;

static int is_empty(void)
{
    pthread_mutex_lock(&lock);
    int empty = items == 0;
    pthread_mutex_unlock(&lock);
    return empty;
}

static void pop(void)
{
    pthread_mutex_lock(&lock);
    if (items == 0)
        abort();
    items--;
    pthread_mutex_unlock(&lock);
}

static void *consumer(void *late)
{
    if (late)
        work(LATE);
    if (!is_empty())
        pop();
    return NULL;
}

int main(void)
{
    pthread_t one = start(consumer, NULL);
    pthread_t other = start(consumer, &lock);
    finish(one);
    finish(other);
    return 0;
}
