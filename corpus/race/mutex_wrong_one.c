// Each thread takes a lock, but not the same one: two locks protect nothing.
#include "start.h"

pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t yours = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *one(void *unused)
{
    pthread_mutex_lock(&mine);
    counter++; // race: counter
    pthread_mutex_unlock(&mine);
    return unused;
}

static void *other(void *unused)
{
    pthread_mutex_lock(&yours);
    counter++; // race: counter
    pthread_mutex_unlock(&yours);
    return unused;
}

int main(void)
{
    both(one, other);
    printf("%d\n", counter);
    return 0;
}
