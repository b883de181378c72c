// Two threads send small pieces over TCP to a third, which tells what came when: Nagle's rule and delayed
// acknowledgements would make that a matter of real time.
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SENDERS = 2, PIECES = 20 };
static struct sockaddr_in address;

static void *send_pieces(void *name) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(s, (struct sockaddr *)&address, sizeof address) == 0);
    char answer;
    for (int i = 0; i < PIECES; i++) {
        assert(write(s, name, 1) == 1);
        if (i == 0) assert(read(s, &answer, 1) == 1);
    }
    int delay;
    socklen_t size = sizeof delay;
    assert(getsockopt(s, IPPROTO_TCP, TCP_NODELAY, &delay, &size) == 0 && delay == 0);
    while (read(s, &answer, 1) == 1) continue;
    return NULL;
}

int main(void) {
    int l = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    assert(bind(l, (struct sockaddr *)&address, size) == 0 && listen(l, SENDERS) == 0);
    assert(getsockname(l, (struct sockaddr *)&address, &size) == 0);
    pthread_t senders[SENDERS];
    int connections[SENDERS], answered[64] = { 0 };
    for (int i = 0; i < SENDERS; i++) pthread_create(&senders[i], NULL, send_pieces, "AB" + i);
    for (int i = 0; i < SENDERS; i++) {
        struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.fd = accept(l, NULL, NULL) };
        connections[i] = event.data.fd;
        assert(epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event) == 0);
    }
    for (int left = SENDERS * PIECES, looks = 1; left > 0; looks++) {
        struct epoll_event events[SENDERS];
        int ready = epoll_wait(poll, events, SENDERS, 0);
        for (int i = 0; i < ready; i++) {
            char pieces[PIECES + 1] = { 0 };
            long got = recv(events[i].data.fd, pieces, PIECES, MSG_DONTWAIT);
            if (got <= 0) continue;
            // Who answers makes acknowledgements wait for company.
            if (!answered[events[i].data.fd]++)
                assert(send(events[i].data.fd, "!", 1, 0) == 1);
            printf("look %d, %d ready: %s\n", looks, ready, pieces);
            left -= got;
        }
    }
    for (int i = 0; i < SENDERS; i++) shutdown(connections[i], SHUT_WR);
    for (int i = 0; i < SENDERS; i++) pthread_join(senders[i], NULL);
    return 0;
}
