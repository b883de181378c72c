// A fork in between changes nothing for the threads of the parent.
#include "start.h"
#include <sys/wait.h>
#include <unistd.h>

int counter;

static void *count(void *unused)
{
    counter++; // race: counter
    return unused;
}

int main(void)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(0);
    both(count, count);
    waitpid(child, &status, 0);
    printf("%d\n", counter);
    return 0;
}
