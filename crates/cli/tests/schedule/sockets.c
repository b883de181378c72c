// Threads that connect to another through the kernel's network, and through a name to which more come at once than
// there is room for; and one that nobody answers.
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLIENTS = 3 };
static struct sockaddr_in network = {.sin_family = AF_INET};
static struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "\0raddle-sockets-test"};

static void *client(void *which) {
    long number = (long)which;
    int over_network = number % 2;
    int out = socket(over_network ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    int failed = over_network ? connect(out, (void *)&network, sizeof network)
                              : connect(out, (void *)&local, sizeof local);
    char byte = failed ? '!' : '0' + number;
    if (write(out, &byte, 1) != 1)
        return (void *)1;
    close(out);
    return 0;
}

static int listener(int family, void *address, socklen_t length, int room) {
    int in = socket(family, SOCK_STREAM, 0);
    if (bind(in, address, length) || listen(in, room))
        perror("listener");
    return in;
}

int main(void) {
    socklen_t length = sizeof network;
    network.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // Nobody listens there yet.
    int probe = socket(AF_INET, SOCK_STREAM, 0);
    bind(probe, (void *)&network, sizeof network);
    getsockname(probe, (void *)&network, &length);
    int nobody = socket(AF_INET, SOCK_STREAM, 0);
    int refused = connect(nobody, (void *)&network, sizeof network) && errno == ECONNREFUSED;
    close(probe);
    network.sin_port = 0;
    int in[2] = {listener(AF_UNIX, &local, sizeof local, 0), listener(AF_INET, &network, sizeof network, 8)};
    getsockname(in[1], (void *)&network, &length);

    pthread_t threads[2 * CLIENTS];
    for (long i = 0; i < 2 * CLIENTS; i++)
        pthread_create(&threads[i], 0, client, (void *)i);
    int sum = 0;
    for (int i = 0; i < 2 * CLIENTS; i++) {
        int from = accept(in[i % 2], 0, 0);
        char byte = '?';
        if (read(from, &byte, 1) == 1)
            sum += byte - '0';
        close(from);
    }
    for (int i = 0; i < 2 * CLIENTS; i++)
        pthread_join(threads[i], 0);
    printf("refused: %d, heard: %d\n", refused, sum);
    return 0;
}
