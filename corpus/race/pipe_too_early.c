// The byte is written before the message.
#include "start.h"
#include <unistd.h>

int ends[2];
int message;

static void *producer(void *unused)
{
    if (write(ends[1], "x", 1) != 1)
        abort();
    message = 42; // race: message
    return unused;
}

static void *consumer(void *unused)
{
    char byte;

    if (read(ends[0], &byte, 1) != 1)
        abort();
    message++; // race: message
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
