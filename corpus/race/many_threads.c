// Sixty readers with the lock and, among them, one writer without it.
#include "start.h"

enum { READERS = 60 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int value;

static void *reader(void *unused)
{
    int seen;

    pthread_mutex_lock(&lock);
    seen = value; // race: value
    pthread_mutex_unlock(&lock);
    return seen < 2 ? unused : NULL;
}

static void *writer(void *unused)
{
    value = 1; // race: value
    return unused;
}

int main(void)
{
    pthread_t threads[READERS + 1];

    for (int i = 0; i < READERS + 1; i++)
        threads[i] = start(i == READERS / 2 ? writer : reader, NULL);
    for (int i = 0; i < READERS + 1; i++)
        finish(threads[i]);
    printf("%d\n", value);
    return 0;
}
