// The flag is set and signalled without the lock: it may come between the look and the wait.
// fails: deadlock
#include "stagger.h"
#include "start.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static volatile int flag;

static void *waiter(void *unused)
{
    pthread_mutex_lock(&lock);
    while (!flag)
        pthread_cond_wait(&ready, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *setter(void *unused)
{
    work(2 * LATE);
    flag = 1;
    pthread_cond_signal(&ready);
    return unused;
}

int main(void)
{
    both(waiter, setter);
    return 0;
}
