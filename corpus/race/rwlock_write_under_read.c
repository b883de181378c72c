// The counter is incremented under a read lock, which many can hold at once.
#include "start.h"

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int counter;

static void *count(void *unused)
{
    pthread_rwlock_rdlock(&lock);
    counter++; // race: counter
    pthread_rwlock_unlock(&lock);
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
