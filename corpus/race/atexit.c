// Main writes after it has registered the handler, another thread calls exit.
#include "steps.h"
#include "start.h"
#include <unistd.h>

int message;

static void at_end(void)
{
    message++; // race: message
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
    atexit(at_end);
    message = 41; // race: message
    step_done(1);
    for (;;)
        pause();
}
