// A POSIX spin lock, also by trylock.
// clean
#include "start.h"

pthread_spinlock_t lock;
int counter;

static void *count(void *unused)
{
    pthread_spin_lock(&lock);
    counter++;
    pthread_spin_unlock(&lock);
    if (pthread_spin_trylock(&lock) == 0) {
        counter++;
        pthread_spin_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE);
    both(count, count);
    printf("%d\n", counter >= 2);
    return 0;
}
