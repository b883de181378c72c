// Of four counters side by side each is counted up in a segment of its own, between critical sections that are about something else;
// another thread resets one of them.
#include "start.h"
#include <stdint.h>

enum { COUNTERS = 512, ROUNDS = 12 };

uint16_t counters[COUNTERS];
static pthread_mutex_t elsewhere = PTHREAD_MUTEX_INITIALIZER;

static void *count(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&elsewhere);
        pthread_mutex_unlock(&elsewhere);
        for (int i = round % 4; i < COUNTERS; i += 4)
            counters[i]++; // race: counters
    }
    return unused;
}

static void *reset(void *unused)
{
    counters[131] = 0; // race: counters
    return unused;
}

int main(void)
{
    both(count, reset);
    printf("%d\n", counters[0]);
    return 0;
}
