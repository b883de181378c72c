// trywrlock and timedrdlock, heeded.
// clean
#include "start.h"
#include <time.h>

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int value;

static void *writer(void *unused)
{
    for (int i = 0; i < 50; i++)
        if (pthread_rwlock_trywrlock(&lock) == 0) {
            value++;
            pthread_rwlock_unlock(&lock);
        }
    return unused;
}

static void *reader(void *unused)
{
    struct timespec until;
    int sum = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 600;
    for (int i = 0; i < 50; i++)
        if (pthread_rwlock_timedrdlock(&lock, &until) == 0) {
            sum += value;
            pthread_rwlock_unlock(&lock);
        }
    return sum < 0 ? NULL : unused;
}

int main(void)
{
    both(writer, reader);
    printf("%d\n", value >= 0);
    return 0;
}
