// A volatile flag that one thread sets and the other spins on, the way older programs do it. The small loop that only
// re-reads the flag makes it a synchronisation variable (the rule of spin reads). By the language it is a race on the
// flag; by that rule it is ad-hoc synchronisation, and the data it protects must not be reported. helgrind, drd and
// ThreadSanitizer report both.
// clean
#include "start.h"

volatile int ready;
int message;

static void *producer(void *unused)
{
    message = 42;
    ready = 1;
    return unused;
}

static void *consumer(void *unused)
{
    while (!ready)
        ;
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
