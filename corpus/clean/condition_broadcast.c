// One broadcast lets three consumers read what was prepared; each may come before or after it.
// clean
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int ready;
int message;

static void *consumer(void *result)
{
    pthread_mutex_lock(&lock);
    while (!ready)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    *(int *)result = message;
    return NULL;
}

int main(void)
{
    int seen[3];
    pthread_t consumers[3];

    for (int i = 0; i < 3; i++)
        consumers[i] = start(consumer, &seen[i]);
    message = 42;
    pthread_mutex_lock(&lock);
    ready = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 3; i++)
        finish(consumers[i]);
    printf("%d\n", seen[0] + seen[1] + seen[2]);
    return 0;
}
