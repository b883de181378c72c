// A POSIX spin lock on one side only.
#include "start.h"

pthread_spinlock_t lock;
int counter;

static void *careful(void *unused)
{
    pthread_spin_lock(&lock);
    counter++; // race: counter
    pthread_spin_unlock(&lock);
    return unused;
}

static void *careless(void *unused)
{
    counter++; // race: counter
    return unused;
}

int main(void)
{
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    both(careful, careless);
    printf("%d\n", counter);
    return 0;
}
