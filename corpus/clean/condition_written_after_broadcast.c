// Who wakes the others goes on writing before it gives the lock back. Correct: nobody who was woken has the lock before that, and
// what the others read they read afterwards, though without the lock.
// clean
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t all_here = PTHREAD_COND_INITIALIZER;
unsigned missing = 2, round_number;
long began;

static void meet(void)
{
    pthread_mutex_lock(&lock);
    if (--missing == 0) {
        round_number++;
        missing = 2;
        pthread_cond_broadcast(&all_here);
        began = 42;
    } else {
        unsigned mine = round_number;
        do
            pthread_cond_wait(&all_here, &lock);
        while (mine == round_number);
    }
    pthread_mutex_unlock(&lock);
}

static void *party(void *unused)
{
    meet();
    printf("%ld\n", began);
    return unused;
}

int main(void)
{
    both(party, party);
    return 0;
}
