// The argument of a thread is changed after the thread was created: the classic loop variable.
#include "start.h"

static void *worker(void *number)
{
    return *(int *)number < 3 ? number : NULL; // race: stack i
}

int main(void)
{
    pthread_t threads[2];

    for (volatile int i = 0; i < 2; i++) // race: stack i
        threads[i] = start(worker, (void *)&i);
    finish(threads[0]);
    finish(threads[1]);
    return 0;
}
