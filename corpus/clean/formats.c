// Threads print and scan, each into what is its own or under a lock; what a conversion leaves out, a precision ends, or no result
// speaks of nobody touches.
// clean
#include "start.h"
#include <string.h>

static char shared[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* What follows its first four bytes is the other thread's. */
static char halves[16] = "leftright";
static int scanned[2];

static void *first(void *unused)
{
    char own[64];

    pthread_mutex_lock(&lock);
    snprintf(shared, sizeof shared, "%s %d", "first", 1);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 100; i++) {
        snprintf(own, sizeof own, "%.4s|%*.*s|%%", halves, 6, 2, halves);
        sscanf("1 x", "%d %d", &scanned[0], &scanned[1]);
    }
    return unused;
}

static void *second(void *unused)
{
    char own[64], word[16];

    pthread_mutex_lock(&lock);
    snprintf(own, sizeof own, "[%s]", shared);
    sscanf(own, "[%15s", word);
    strcpy(shared, word);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 100; i++) {
        memset(halves + 4, 'a' + i % 26, 5);
        sscanf("2 3", "%*d %d", &scanned[1]);
    }
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d %d\n", scanned[0], scanned[1]);
    return 0;
}
