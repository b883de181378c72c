// An eventfd watched by epoll: the message is used after epoll_wait has said so and the event was read.
// clean
#include "start.h"
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

int events, poll_set;
int message;

static void *producer(void *unused)
{
    uint64_t one = 1;

    message = 42;
    if (write(events, &one, sizeof one) != sizeof one)
        abort();
    return unused;
}

static void *consumer(void *unused)
{
    struct epoll_event event;
    uint64_t count;

    while (epoll_wait(poll_set, &event, 1, -1) != 1)
        ;
    if (read(events, &count, sizeof count) != sizeof count)
        abort();
    message++;
    return unused;
}

int main(void)
{
    struct epoll_event interest = {.events = EPOLLIN};

    events = eventfd(0, 0);
    poll_set = epoll_create1(0);
    if (epoll_ctl(poll_set, EPOLL_CTL_ADD, events, &interest) != 0)
        abort();
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
