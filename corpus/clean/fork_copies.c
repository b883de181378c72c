// After fork, parent and child have a copy each: what both write at the same address is not shared.
// clean
#include "start.h"
#include <sys/wait.h>
#include <unistd.h>

int counter;

static void *count(void *unused)
{
    counter++;
    return unused;
}

int main(void)
{
    pid_t child = fork();

    if (child == 0) {
        finish(start(count, NULL));
        _exit(counter == 1 ? 0 : 1);
    }
    finish(start(count, NULL));
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        abort();
    printf("%d\n", counter);
    return 0;
}
