// It waits for the inner condition with the outer lock in hand, which the signaller needs.
// fails: deadlock
#include "stagger.h"
#include "start.h"

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void *producer(void *unused)
{
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    items++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    return unused;
}

static void *consumer(void *unused)
{
    rest();
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    while (items == 0)
        pthread_cond_wait(&filled, &inner);
    items--;
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
