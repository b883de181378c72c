// Signals to threads that wait: with a handler that lets calls go on, and with one that does not.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2], pair[2], handled, jumps;
static sigjmp_buf out;

static void handler(int signal) {
    // It makes calls of its own.
    char byte = 'h';
    if (write(pair[1], &byte, 1) == 1 && read(pair[0], &byte, 1) == 1)
        handled += byte == 'h';
    if (signal == SIGUSR2 && jumps)
        siglongjmp(out, 1);
}

static void *reader(void *unused) {
    char byte = '?';
    ssize_t got = read(ends[0], &byte, 1);
    printf("read: %zd %c %s\n", got, byte, got < 0 ? strerror(errno) : "");
    return unused;
}

static void *jumper(void *unused) {
    char byte = '?';
    if (sigsetjmp(out, 1) == 0)
        printf("not here: %zd\n", read(ends[0], &byte, 1));
    ssize_t got = read(ends[0], &byte, 1);
    printf("after the jump: %zd %c\n", got, byte);
    return unused;
}

static void *waiter(void *child) {
    int status;
    pid_t got = waitpid(*(pid_t *)child, &status, 0);
    printf("waited: %d\n", got == *(pid_t *)child);
    return 0;
}

static void one(void *(*function)(void *), void *argument, int signal, int to_write) {
    pthread_t thread;
    pthread_create(&thread, 0, function, argument);
    usleep(100000);
    pthread_kill(thread, signal);
    usleep(100000);
    if (to_write && write(ends[1], "x", 1) != 1)
        puts("cannot write");
    pthread_join(thread, 0);
    fflush(stdout);
}

int main(void) {
    struct sigaction going_on = {.sa_handler = handler, .sa_flags = SA_RESTART}, ending = {.sa_handler = handler};
    sigaction(SIGUSR1, &going_on, 0);
    sigaction(SIGUSR2, &ending, 0);
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    one(reader, 0, SIGUSR1, 1);
    one(reader, 0, SIGUSR2, 0);
    jumps = 1;
    sigaction(SIGUSR2, &going_on, 0);
    one(jumper, 0, SIGUSR2, 1);
    pid_t child = fork();
    if (child == 0) {
        usleep(300000);
        _exit(0);
    }
    one(waiter, &child, SIGUSR1, 0);
    printf("handled: %d\n", handled);
    return 0;
}
