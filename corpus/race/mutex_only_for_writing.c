// The writer locks, the reader thinks that reading an int needs no lock.
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int price;

static void *set_price(void *unused)
{
    pthread_mutex_lock(&guard);
    price = 42; // race: price
    pthread_mutex_unlock(&guard);
    return unused;
}

static void *show_price(void *result)
{
    *(int *)result = price; // race: price
    return NULL;
}

int main(void)
{
    int seen = 0;
    pthread_t writer = start(set_price, NULL);
    pthread_t reader = start(show_price, &seen);
    finish(writer);
    finish(reader);
    printf("%d\n", seen == 0 || seen == 42);
    return 0;
}
