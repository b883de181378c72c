// Read under the lock, written after it was released. In every run the two critical sections come one after the
// other, so happens-before with lock edges sees some of these pairs ordered; the write is not protected.
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *count(void *unused)
{
    int seen;

    pthread_mutex_lock(&guard);
    seen = counter; // race: counter
    pthread_mutex_unlock(&guard);
    counter = seen + 1; // race: counter
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter > 0);
    return 0;
}
