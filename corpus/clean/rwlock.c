// Reading under the read side, writing under the write side.
// clean
#include "start.h"

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int value;

static void *writer(void *unused)
{
    for (int i = 0; i < 20; i++) {
        pthread_rwlock_wrlock(&lock);
        value++;
        pthread_rwlock_unlock(&lock);
    }
    return unused;
}

static void *reader(void *unused)
{
    int sum = 0;

    for (int i = 0; i < 20; i++) {
        pthread_rwlock_rdlock(&lock);
        sum += value;
        pthread_rwlock_unlock(&lock);
    }
    return sum < 0 ? NULL : unused;
}

int main(void)
{
    pthread_t second = start(reader, NULL);
    both(writer, reader);
    finish(second);
    printf("%d\n", value);
    return 0;
}
