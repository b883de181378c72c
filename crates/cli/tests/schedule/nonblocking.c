// One thread sends to another over TCP and waits for neither room nor readers: by edge-triggered epoll, as event loops do. Then it
// sends more to itself than is kept of what nobody has read. Both say what each of their calls came to.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TOTAL = 400000, TO_ITSELF = 40000 };
static char out[50000], in[70000];
static struct sockaddr_in network = {.sin_family = AF_INET};

static int connected(void) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (void *)&network, sizeof network))
        exit(2);
    fcntl(s, F_SETFL, O_NONBLOCK);
    return s;
}

static void *sender(void *unused) {
    int s = connected(), e = epoll_create1(0), sent = 0;
    struct epoll_event about = {EPOLLOUT | EPOLLET, {0}}, got;
    epoll_ctl(e, EPOLL_CTL_ADD, s, &about);
    unsigned hash = 1;
    while (sent < TOTAL) {
        int left = TOTAL - sent;
        int n = write(s, out, left < (int)sizeof out ? left : (int)sizeof out);
        hash = hash * 33 + n;
        if (n > 0)
            sent += n;
        else
            epoll_wait(e, &got, 1, -1);
    }
    close(s);
    printf("sent in pieces %x\n", hash);
    return unused;
}

int main(void) {
    socklen_t length = sizeof network;
    network.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&network, sizeof network) || listen(listener, 8))
        perror("listener");
    getsockname(listener, (void *)&network, &length);
    pthread_t thread;
    pthread_create(&thread, 0, sender, 0);
    int from = accept4(listener, 0, 0, SOCK_NONBLOCK), got = 0, sent = 0;
    unsigned hash = 1;
    struct pollfd one = {from, POLLIN, 0};
    for (int n; (n = read(from, in, sizeof in)) != 0;) {
        hash = hash * 33 + n;
        if (n > 0)
            got += n;
        else
            poll(&one, 1, -1);
    }
    printf("got %d in pieces %x\n", got, hash);

    int here = connected(), there = accept4(listener, 0, 0, SOCK_NONBLOCK);
    for (got = 0; sent < TO_ITSELF;) {
        int n = send(here, out, TO_ITSELF - sent, MSG_NOSIGNAL);
        if (n > 0)
            sent += n;
        else
            got += read(there, in, sizeof in);
    }
    while (got < sent)
        got += read(there, in, sizeof in);
    pthread_join(thread, 0);
    printf("to itself %d\n", got);
    return 0;
}
