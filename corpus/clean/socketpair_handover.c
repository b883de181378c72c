// There and back through a pair of sockets, with send and recv.
// clean
#include "start.h"
#include <sys/socket.h>

int ends[2];
int question, answer;

static void *asker(void *unused)
{
    char byte = 'q';

    question = 42;
    if (send(ends[0], &byte, 1, 0) != 1 || recv(ends[0], &byte, 1, 0) != 1)
        abort();
    answer++;
    return unused;
}

static void *answerer(void *unused)
{
    char byte;

    if (recv(ends[1], &byte, 1, 0) != 1)
        abort();
    answer = question + 1;
    if (send(ends[1], &byte, 1, 0) != 1)
        abort();
    return unused;
}

int main(void)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        abort();
    both(asker, answerer);
    printf("%d\n", answer);
    return 0;
}
