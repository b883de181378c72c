// A "lock" that is tested and set in two steps: both threads pass the test before either sets it.
#include "steps.h"
#include "start.h"

volatile int lock;
int counter;

static void *first(void *unused)
{
    while (lock) // suspected: lock
        ;
    step_done(1);
    step_wait(2);
    lock = 1;  // suspected: lock
    counter++; // race: counter
    lock = 0;  // suspected: lock
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    while (lock) // suspected: lock
        ;
    step_done(2);
    lock = 1;  // suspected: lock
    counter++; // race: counter
    lock = 0;  // suspected: lock
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", counter);
    return 0;
}
