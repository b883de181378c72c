// A pointer to main's thread-local variable is given away: thread-local is a place, not a protection.
#include "start.h"

__thread int counter;

static void *worker(void *place)
{
    ++*(int *)place; // race: thread-local counter
    return NULL;
}

int main(void)
{
    pthread_t thread = start(worker, &counter);
    counter++; // race: thread-local counter
    finish(thread);
    printf("%d\n", counter);
    return 0;
}
