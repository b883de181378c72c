// Set up without a lock before the threads exist, with the lock while they run, and without again after they
// were joined: all three are right.
// clean
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int table[8];

static void *worker(void *unused)
{
    for (int i = 0; i < 8; i++) {
        pthread_mutex_lock(&lock);
        table[i]++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    int sum = 0;

    for (int i = 0; i < 8; i++)
        table[i] = i;
    both(worker, worker);
    for (int i = 0; i < 8; i++)
        sum += table[i];
    printf("%d\n", sum);
    return 0;
}
