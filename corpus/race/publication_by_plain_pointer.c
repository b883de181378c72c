// The pointer to a new block is published by a plain store: the pointer races, and with it what it points to.
#include "steps.h"
#include "start.h"

int *published;

static void *producer(void *unused)
{
    int *block = malloc(sizeof *block); // block: heap block
    *block = 42; // race: heap block
    published = block; // race: published
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    int *seen = published; // race: published
    if (seen)
        *seen += 1; // race: heap block
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", *published);
    return 0;
}
