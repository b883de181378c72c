// exit: 0
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(void) {
    setenv("RADDLE_TEST_VARIABLE", "kept", 1);
    pid_t child;
    char *arguments[] = {"sh", "-c", "echo spawned $RADDLE_TEST_VARIABLE; exit 5", 0};
    int status;
    posix_spawnp(&child, "sh", 0, 0, arguments, environ);
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    fflush(stdout);
    child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "echo executed; env | grep -c DYNAMORIO", (char *)0);
        _exit(9);
    }
    waitpid(child, &status, 0);
    printf("%d\n", WEXITSTATUS(status));
    fflush(stdout);
    int failed = execlp("/nonexistent/program", "x", (char *)0);
    printf("%d, still here\n", failed);
    FILE *pipe = popen("echo piped", "r");
    char line[20] = "";
    fgets(line, sizeof line, pipe);
    fputs(line, stdout);
    fflush(stdout);
    system("echo by system");
    return pclose(pipe);
}
