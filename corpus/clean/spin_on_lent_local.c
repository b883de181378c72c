// A flag among the local variables of the thread that waits for it, lent to the one that takes it down, each time anew. The loop
// reads nothing else, and writes nothing: only somebody else can end it.
// clean
#include "start.h"
#include <sched.h>

enum { ROUNDS = 4 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
volatile long *lent;
int worked;

static void *worker(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&lock);
        while (!lent)
            pthread_cond_wait(&filled, &lock);
        volatile long *flag = lent;
        lent = NULL;
        pthread_mutex_unlock(&lock);
        worked++;
        *flag = 0;
    }
    return unused;
}

static void *waiter(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        volatile long busy = 1;
        pthread_mutex_lock(&lock);
        lent = &busy;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&lock);
        while (busy)
            sched_yield();
        worked++;
    }
    return unused;
}

int main(void)
{
    both(worker, waiter);
    printf("%d\n", worked);
    return 0;
}
