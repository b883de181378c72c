// A list under a lock, filled by one thread and asked again and again by another, which never waits: what is in an
// item was written before it was put there, and is used after it was taken out and while the lock is held.
// clean
#include "start.h"
#include <sched.h>
#include <stdlib.h>

enum { ITEMS = 20 };

struct item {
    struct item *next;
    int value, weight;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct item *first, **last = &first;

static void *producer(void *unused)
{
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = malloc(sizeof *item);
        item->value = i;
        item->weight = 2 * i;
        pthread_mutex_lock(&lock);
        item->next = NULL;
        *last = item;
        last = &item->next;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *consumer(void *unused)
{
    int sum = 0;

    for (int taken = 0; taken < ITEMS;) {
        pthread_mutex_lock(&lock);
        struct item *item = first;
        if (item) {
            first = item->next;
            if (!first)
                last = &first;
            sum += item->weight;
            taken++;
        }
        pthread_mutex_unlock(&lock);
        if (item) {
            sum += item->value;
            free(item);
        } else {
            sched_yield();
        }
    }
    printf("%d\n", sum);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
