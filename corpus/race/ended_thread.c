// The first thread has ended long before the second begins; main neither joined it nor waited for it in any other way.
#include "steps.h"
#include "start.h"

int shared;

static void *first(void *unused)
{
    shared = 1; // race: shared
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    shared = 2; // race: shared
    return unused;
}

int main(void)
{
    pthread_t early = start(first, NULL);
    step_wait(1);
    pthread_t late = start(second, NULL);
    finish(early);
    finish(late);
    printf("%d\n", shared);
    return 0;
}
