// Nothing but the signal says that it is time: if it comes before the wait, nobody hears it.
// fails: deadlock
#include "stagger.h"
#include "start.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER;

static void *runner(void *unused)
{
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&go, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    pthread_t thread = start(runner, NULL);
    rest(); // "it will be waiting by then"
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&go);
    pthread_mutex_unlock(&lock);
    finish(thread);
    return 0;
}
