// A byte through a pipe hands the message over.
// clean
#include "start.h"
#include <unistd.h>

int ends[2];
int message;

static void *producer(void *unused)
{
    message = 42;
    if (write(ends[1], "x", 1) != 1)
        abort();
    return unused;
}

static void *consumer(void *unused)
{
    char byte;

    if (read(ends[0], &byte, 1) != 1)
        abort();
    message++;
    return unused;
}

int main(void)
{
    if (pipe(ends) != 0)
        abort();
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
