// A list under a lock that one thread fills and another polls; the producer still writes to an item that is already
// in the list.
#include "steps.h"
#include "start.h"
#include <stdlib.h>

struct item {
    struct item *next;
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct item *list;

static void *producer(void *unused)
{
    struct item *item = malloc(sizeof *item); // block: heap item
    item->value = 1;
    pthread_mutex_lock(&lock);
    item->next = list;
    list = item;
    pthread_mutex_unlock(&lock);
    step_done(1);
    item->value = 2; // race: heap item
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    struct item *item = list;
    pthread_mutex_unlock(&lock);
    printf("%d\n", item->value > 0); // race: heap item
    return unused;
}

int main(void)
{
    both(producer, consumer);
    free(list);
    return 0;
}
