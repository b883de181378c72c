// The twin of clean/atomic_checked_once.c with a plain flag: the same instructions, and a race on both.
#include "steps.h"
#include "start.h"

int ready;
int message;

static void *producer(void *unused)
{
    message = 42; // race: message
    ready = 1; // race: ready
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    if (ready) // race: ready
        message++; // race: message
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
