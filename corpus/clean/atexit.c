// What was written before atexit is seen by the handler, whichever thread calls exit.
// clean
#include "steps.h"
#include "start.h"
#include <unistd.h>

int message;

static void at_end(void)
{
    message++;
    printf("%d\n", message);
}

static void *ender(void *unused)
{
    step_wait(1);
    exit(0);
    return unused;
}

int main(void)
{
    start(ender, NULL);
    message = 41;
    atexit(at_end);
    step_done(1);
    for (;;)
        pause();
}
