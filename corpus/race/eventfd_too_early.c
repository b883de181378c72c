// The event is posted before the message is complete.
#include "start.h"
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int events;
int message;

static void *producer(void *unused)
{
    uint64_t one = 1;

    if (write(events, &one, sizeof one) != sizeof one)
        abort();
    message = 42; // race: message
    return unused;
}

static void *consumer(void *unused)
{
    uint64_t count;

    if (read(events, &count, sizeof count) != sizeof count)
        abort();
    message++; // race: message
    return unused;
}

int main(void)
{
    events = eventfd(0, 0);
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
