// Much over TCP and over a pair of sockets between two threads, more than the kernel keeps of it, in calls that wait
// until all of it is taken, or there.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BYTES = 3 << 20, PIECE = 1 << 20 };

static int listening, pair[2];
static char piece[PIECE];

static void all_of(long expected, long got)
{
    if (got != expected) {
        fprintf(stderr, "%ld of %ld\n", got, expected);
        abort();
    }
}

static void *sender(void *unused)
{
    struct sockaddr_in where;
    socklen_t length = sizeof where;
    struct iovec parts[2] = {{piece, PIECE / 2}, {piece + PIECE / 2, PIECE / 2}};
    union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } more = {{0}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int to = socket(AF_INET, SOCK_STREAM, 0);

    getsockname(listening, (struct sockaddr *)&where, &length);
    if (connect(to, (struct sockaddr *)&where, sizeof where) != 0)
        abort();
    for (long left = BYTES; left > 0; left -= PIECE)
        all_of(PIECE, send(to, piece, PIECE, 0));
    close(to);

    all_of(PIECE, send(pair[0], piece, PIECE, 0));
    all_of(PIECE, sendmsg(pair[0], &message, 0));
    // A descriptor goes with the first byte of it, and only once.
    message.msg_control = more.bytes;
    message.msg_controllen = sizeof more.bytes;
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(first), &listening, sizeof(int));
    all_of(PIECE, sendmsg(pair[0], &message, 0));
    return unused;
}

int main(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static char bytes[PIECE];
    union { char bytes[4 * CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } more;
    struct iovec part = {bytes, PIECE};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = more.bytes,
        .msg_controllen = sizeof more.bytes};
    unsigned long order = 5381;
    pthread_t thread;
    long calls = 0, all = 0;
    ssize_t got;
    int from;

    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&where, sizeof where) != 0 || listen(listening, 1) != 0)
        abort();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        abort();
    pthread_create(&thread, NULL, sender, NULL);
    from = accept(listening, NULL, NULL);
    while ((got = recv(from, bytes, 300000, 0)) > 0) {
        order = order * 33 + got;
        calls++;
        all += got;
    }
    all_of(BYTES, all);
    all_of(PIECE, recv(pair[1], bytes, PIECE, MSG_WAITALL));
    all_of(PIECE, recv(pair[1], bytes, PIECE, MSG_WAITALL));
    // What comes with a descriptor does not wait for more.
    got = recvmsg(pair[1], &message, MSG_WAITALL);
    if (got <= 0 || CMSG_FIRSTHDR(&message) == NULL)
        abort();
    message.msg_control = NULL;
    message.msg_controllen = 0;
    part.iov_len = PIECE - got;
    all_of(PIECE - got, recvmsg(pair[1], &message, MSG_WAITALL));
    pthread_join(thread, NULL);
    printf("%ld calls, %lx\n", calls, order);
    return 0;
}
