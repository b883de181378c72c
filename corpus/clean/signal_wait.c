// A signal waited for with sigwait: the thread that waits is ordered after the one that sent it.
// clean
#include "start.h"
#include <signal.h>

sigset_t waited_for;
int message;

static void *waiter(void *unused)
{
    int got;

    if (sigwait(&waited_for, &got) != 0)
        abort();
    message++;
    return unused;
}

int main(void)
{
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &waited_for, NULL);
    pthread_t thread = start(waiter, NULL);
    message = 41;
    pthread_kill(thread, SIGUSR1);
    finish(thread);
    printf("%d\n", message);
    return 0;
}
