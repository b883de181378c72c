// The spin is right, the producer's order is wrong: it writes the data after the flag.
#include "start.h"

volatile int ready;
int message;

static void *producer(void *unused)
{
    ready = 1;
    message = 42; // race: message
    return unused;
}

static void *consumer(void *unused)
{
    while (!ready)
        ;
    message++; // race: message
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
