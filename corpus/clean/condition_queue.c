// A bounded queue with two conditions: items pass through it and are then used without any lock.
// clean
#include "start.h"

enum { CAPACITY = 2, ITEMS = 40 };

struct item {
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
struct item *queue[CAPACITY];
unsigned put_count, taken_count;

static void put(struct item *item)
{
    pthread_mutex_lock(&lock);
    while (put_count - taken_count == CAPACITY)
        pthread_cond_wait(&not_full, &lock);
    queue[put_count++ % CAPACITY] = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}

static struct item *take(void)
{
    struct item *item;

    pthread_mutex_lock(&lock);
    while (put_count == taken_count)
        pthread_cond_wait(&not_empty, &lock);
    item = queue[taken_count++ % CAPACITY];
    pthread_cond_signal(&not_full);
    pthread_mutex_unlock(&lock);
    return item;
}

static void *producer(void *unused)
{
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = malloc(sizeof *item);
        item->value = i;
        put(item);
    }
    return unused;
}

static void *consumer(void *result)
{
    for (int i = 0; i < ITEMS; i++) {
        struct item *item = take();
        *(int *)result += item->value;
        free(item);
    }
    return NULL;
}

int main(void)
{
    int sum = 0;
    pthread_t from = start(producer, NULL);
    pthread_t to = start(consumer, &sum);
    finish(from);
    finish(to);
    printf("%d\n", sum);
    return 0;
}
