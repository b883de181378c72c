// Both threads take the lock for every access.
// clean
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&guard);
        counter++;
        pthread_mutex_unlock(&guard);
    }
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
