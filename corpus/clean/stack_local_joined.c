// The same, after the join.
// clean
#include "start.h"

static void *writer(void *place)
{
    *(volatile int *)place = 42;
    return NULL;
}

int main(void)
{
    volatile int value = 0;
    pthread_t thread = start(writer, (void *)&value);
    finish(thread);
    printf("%d\n", value);
    return 0;
}
