// A handler runs in the thread it interrupts: it and the thread do not race with each other.
// clean
#include "start.h"
#include <signal.h>

volatile sig_atomic_t caught;
int counter;

static void handler(int number)
{
    (void)number;
    caught = 1;
    counter++;
}

int main(void)
{
    signal(SIGUSR1, handler);
    counter++;
    raise(SIGUSR1);
    counter++;
    printf("%d %d\n", (int)caught, counter);
    return 0;
}
