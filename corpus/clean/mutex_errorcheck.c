// Relocking an error-checking lock fails and leaves it held: the access is still protected.
// clean
#include "start.h"

pthread_mutex_t guard;
int counter;

static void *count(void *unused)
{
    pthread_mutex_lock(&guard);
    if (pthread_mutex_lock(&guard) == 0)
        abort();
    counter++;
    pthread_mutex_unlock(&guard);
    return unused;
}

int main(void)
{
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&guard, &checked);
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
