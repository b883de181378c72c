// The same over a TCP connection to oneself: the two ends are different descriptors of different sockets.
// clean
#include "start.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

int listening;
struct sockaddr_in address;
int message;

static void *server(void *unused)
{
    char byte;
    int connection = accept(listening, NULL, NULL);

    if (connection < 0 || read(connection, &byte, 1) != 1)
        abort();
    message++;
    close(connection);
    return unused;
}

static void *client(void *unused)
{
    int connection = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(connection, (struct sockaddr *)&address, sizeof address) != 0)
        abort();
    message = 42;
    if (write(connection, "x", 1) != 1)
        abort();
    close(connection);
    return unused;
}

int main(void)
{
    socklen_t length = sizeof address;

    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 1) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &length) != 0)
        abort();
    both(server, client);
    printf("%d\n", message);
    return 0;
}
