// One thread takes the lock, the other forgot to: the plainest race there is.
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *careful(void *unused)
{
    pthread_mutex_lock(&guard);
    counter++; // race: counter
    pthread_mutex_unlock(&guard);
    return unused;
}

static void *careless(void *unused)
{
    counter++; // race: counter
    return unused;
}

int main(void)
{
    both(careful, careless);
    printf("%d\n", counter);
    return 0;
}
