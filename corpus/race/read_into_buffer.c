// The kernel writes a buffer for one thread (read), while another reads it.
#include "start.h"
#include <fcntl.h>
#include <unistd.h>

char buffer[64];

static void *filler(void *unused)
{
    int zero = open("/dev/zero", O_RDONLY);

    if (read(zero, buffer, sizeof buffer) != sizeof buffer) // race: buffer
        abort();
    close(zero);
    return unused;
}

static void *user(void *unused)
{
    ((volatile char *)buffer)[10] = 1; // race: buffer
    return unused;
}

int main(void)
{
    both(filler, user);
    printf("%d\n", buffer[10] <= 1);
    return 0;
}
