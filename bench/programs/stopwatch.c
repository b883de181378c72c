/* Runs a program and writes what it cost: one line with wall seconds, user seconds, system seconds,
 * peak resident kilobytes, and the exit status (128 + n for a signal).
 *
 * Times and memory include the descendants that were waited for; memory is the largest of any one
 * process. This is a program of its own, linked statically, because a process starts with the peak
 * memory of whoever forked it: started from a Python script, `true` would seem to need 10 MB.
 *
 * usage: stopwatch RESULT-FILE PROGRAM ARGUMENTS...
 */

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: stopwatch RESULT-FILE PROGRAM ARGUMENTS...\n", stderr);
        return 2;
    }
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    pid_t child = vfork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror("stopwatch");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &after);

    FILE *result = fopen(argv[1], "w");
    if (!result) {
        perror(argv[1]);
        return 2;
    }
    double wall = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
    int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    fprintf(result, "%.6f %.6f %.6f %ld %d\n", wall, seconds(usage.ru_utime), seconds(usage.ru_stime),
            usage.ru_maxrss, exit_status);
    return fclose(result) == 0 ? 0 : 2;
}
