// exit: 0
// What is ignored interrupts nothing, and children whose end is ignored need not be waited for; what is handled
// afterwards is handled.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int handled;

static void handler(int signal) {
    handled = signal;
}

// A child that does this to us after a while, and ends.
static void child(int signal) {
    pid_t parent = getpid();
    if (fork() == 0) {
        usleep(100000);
        if (signal) kill(parent, signal);
        _exit(0);
    }
}

static void sleeps(const char *when) {
    struct timespec time = { 0, 300000000 };
    int slept = nanosleep(&time, NULL);
    printf("%s: %s, polled %d\n", when, slept == 0 ? "slept" : "woken", poll(NULL, 0, 10));
}

int main(void) {
    child(0);
    sleeps("the end of a child");
    printf("waited %d\n", wait(NULL) > 0);

    signal(SIGINT, SIG_IGN);
    child(SIGINT);
    sleeps("an ignored signal");
    printf("waited %d\n", wait(NULL) > 0);

    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGINT, &action, NULL);
    child(SIGINT);
    sleeps("a handled signal");
    printf("handled %d, waited %d\n", handled == SIGINT, wait(NULL) > 0);

    signal(SIGCHLD, SIG_IGN);
    child(0);
    sleeps("the end of an ignored child");
    int none = wait(NULL) < 0 && errno == ECHILD;
    printf("nobody to wait for %d\n", none);

    handled = 0;
    sigaction(SIGCHLD, &action, NULL);
    child(0);
    sleeps("a handled child");
    printf("handled %d, waited %d\n", handled == SIGCHLD, wait(NULL) > 0);
    return 0;
}
