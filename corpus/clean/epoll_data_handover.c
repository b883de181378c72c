// epoll_ctl puts a pointer to a connection into the kernel, epoll_wait gives it to another thread: what was written before
// the one is seen after the other.
// clean
#include "start.h"
#include <sys/epoll.h>
#include <unistd.h>

struct connection {
    int descriptor;
    int requests;
};

int poll_set;
int ends[2];

static void *acceptor(void *unused)
{
    struct connection *made = malloc(sizeof *made);
    struct epoll_event interest = {.events = EPOLLIN, .data.ptr = made};

    made->descriptor = ends[0];
    made->requests = 1;
    if (epoll_ctl(poll_set, EPOLL_CTL_ADD, ends[0], &interest) != 0)
        abort();
    return unused;
}

static void *worker(void *unused)
{
    struct epoll_event event;
    struct connection *got;

    while (epoll_wait(poll_set, &event, 1, -1) != 1)
        ;
    got = event.data.ptr;
    got->requests++;
    printf("%d\n", got->requests);
    free(got);
    return unused;
}

int main(void)
{
    poll_set = epoll_create1(0);
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
        abort();
    both(acceptor, worker);
    return 0;
}
