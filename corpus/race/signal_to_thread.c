// The sender goes on writing after it sent the signal whose handler, in another thread, writes too.
#include "steps.h"
#include "start.h"
#include <signal.h>

int message;

static void handler(int number)
{
    (void)number;
    message++; // race: message
}

static void *target(void *unused)
{
    step_done(1);
    step_wait(2);
    return unused;
}

int main(void)
{
    signal(SIGUSR1, handler);
    pthread_t thread = start(target, NULL);
    step_wait(1); // the thread is in its own code
    pthread_kill(thread, SIGUSR1);
    message = 41; // race: message
    step_done(2);
    finish(thread);
    printf("%d\n", message);
    return 0;
}
