// A thread that does not get the lock leaves the counter alone.
// clean
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *count(void *unused)
{
    for (int i = 0; i < 50; i++)
        if (pthread_mutex_trylock(&guard) == 0) {
            counter++;
            pthread_mutex_unlock(&guard);
        }
    return unused;
}

int main(void)
{
    both(count, count);
    printf("%d\n", counter > 0);
    return 0;
}
