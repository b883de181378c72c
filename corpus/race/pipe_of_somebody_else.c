// Each thread uses a pipe, but not the same one: descriptors that happen to be pipes order nothing by themselves.
#include "steps.h"
#include "start.h"
#include <unistd.h>

int one[2], other[2];
int message;

static void *first(void *unused)
{
    message = 1; // race: message
    if (write(one[1], "x", 1) != 1)
        abort();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    char byte;

    step_wait(1);
    if (write(other[1], "x", 1) != 1 || read(other[0], &byte, 1) != 1)
        abort();
    message++; // race: message
    return unused;
}

int main(void)
{
    if (pipe(one) != 0 || pipe(other) != 0)
        abort();
    both(first, second);
    printf("%d\n", message);
    return 0;
}
