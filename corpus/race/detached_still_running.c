// A detached thread is not waited for by anything; main reads its result after a "long enough" while.
#include "steps.h"
#include "start.h"

int result;

static void *compute(void *unused)
{
    result = 42; // race: result
    step_done(1);
    return unused;
}

int main(void)
{
    pthread_t thread = start(compute, NULL);
    pthread_detach(thread);
    step_wait(1); // stands for sleep(1)
    printf("%d\n", result); // race: result
    return 0;
}
