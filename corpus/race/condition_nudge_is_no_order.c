// The thread that only nudged wrote something before: being woken by it proves nothing, since the consumer could have
// found its condition true without any nudge.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int gossip;

static void *producer(void *unused)
{
    step_wait(2);
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *nudge(void *unused)
{
    step_wait(1);
    gossip = 1; // race: gossip, predicted
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    step_done(2);
    return unused;
}

static void *consumer(void *unused)
{
    pthread_mutex_lock(&lock);
    step_done(1);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    gossip++; // race: gossip, predicted
    return unused;
}

int main(void)
{
    pthread_t helper = start(nudge, NULL);
    both(producer, consumer);
    finish(helper);
    printf("%d\n", gossip);
    return 0;
}
