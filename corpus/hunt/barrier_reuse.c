// A barrier without generations: who is quick enters the next round before the slow have left this one.
// fails: deadlock
#include "start.h"
#include <unistd.h>

enum { PARTIES = 2 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
static int arrived;

static void barrier(void)
{
    pthread_mutex_lock(&lock);
    if (++arrived == PARTIES) {
        arrived = 0;
        pthread_cond_broadcast(&all_here);
    } else {
        while (arrived != 0)
            pthread_cond_wait(&all_here, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void *party(void *unused)
{
    for (int round = 0; round < 2; round++) {
        barrier();
        usleep(20000);
    }
    return unused;
}

int main(void)
{
    both(party, party);
    return 0;
}
