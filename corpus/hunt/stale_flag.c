// The worker looks whether it may go on, then uses what the end of the program takes away.
// fails: crash
#include "stagger.h"
#include "start.h"

static volatile int running = 1;
static int *volatile resource;

static void *worker(void *unused)
{
    if (running)
        ++*resource;
    return unused;
}

static void *shutdown(void *unused)
{
    work(LATE);
    running = 0;
    resource = NULL;
    return unused;
}

int main(void)
{
    static int cell;
    resource = &cell;
    both(worker, shutdown);
    return 0;
}
