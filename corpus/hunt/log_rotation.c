// The log is closed and opened again while another thread may write to it.
// fails: exit 5
#include "stagger.h"
#include "start.h"
#include <fcntl.h>
#include <unistd.h>

static volatile int descriptor = -1;
static int failed;

static void *rotate(void *unused)
{
    close(descriptor);
    descriptor = open("/dev/null", O_WRONLY);
    return unused;
}

static void *write_line(void *unused)
{
    rest();
    if (write(descriptor, "line\n", 5) != 5)
        failed = 1;
    return unused;
}

int main(void)
{
    descriptor = open("/dev/null", O_WRONLY);
    both(rotate, write_line);
    return failed ? 5 : 0;
}
