// The result is read before the thread that computes it is joined.
#include "start.h"

int result;

static void *compute(void *unused)
{
    result = 42; // race: result
    return unused;
}

int main(void)
{
    pthread_t thread = start(compute, NULL);
    int early = result; // race: result
    finish(thread);
    printf("%d\n", early == 0 || early == 42);
    return 0;
}
