// Of four counters side by side each is counted up in a segment of its own, between critical sections that are about something else,
// two by one thread and two by another; then all are looked at together, by the one who waited for both.
// clean
#include "start.h"
#include <stdint.h>
#include <string.h>

enum { COUNTERS = 512, ROUNDS = 12 };

static uint16_t counters[COUNTERS];
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void count(int who)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&locks[who]);
        pthread_mutex_unlock(&locks[who]);
        for (int i = who * 2 + round % 2; i < COUNTERS; i += 4)
            counters[i]++;
    }
}

static void *first(void *unused)
{
    count(0);
    return unused;
}

static void *second(void *unused)
{
    count(1);
    return unused;
}

int main(void)
{
    uint64_t sum = 0;

    both(first, second);
    for (int i = 0; i < COUNTERS; i += 4) {
        uint64_t four;
        memcpy(&four, counters + i, sizeof four);
        sum += four;
    }
    memset(counters, 0, sizeof counters);
    printf("%lu\n", (unsigned long)sum);
    return 0;
}
