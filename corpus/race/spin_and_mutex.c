// A spin lock here, a mutex there: two kinds of lock, no protection.
#include "start.h"

pthread_spinlock_t spin;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *spins(void *unused)
{
    pthread_spin_lock(&spin);
    counter++; // race: counter
    pthread_spin_unlock(&spin);
    return unused;
}

static void *sleeps(void *unused)
{
    pthread_mutex_lock(&mutex);
    counter++; // race: counter
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    both(spins, sleeps);
    printf("%d\n", counter);
    return 0;
}
