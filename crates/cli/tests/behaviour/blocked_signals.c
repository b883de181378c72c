// exit: 0
// Signals that are blocked and then waited for, read, unblocked, queued, and inherited by another program.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

// Changes its mask and puts it back: what it puts back includes what the handler itself blocks.
static void handler(int signal)
{
    sigset_t more, before;

    handled += signal == SIGUSR2;
    sigemptyset(&more);
    sigaddset(&more, SIGHUP);
    sigprocmask(SIG_BLOCK, &more, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static sigset_t set_of(int first, int second, int third)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, first);
    sigaddset(&set, second);
    sigaddset(&set, third);
    return set;
}

static void *waiter(void *set)
{
    long sum = 0;

    for (int i = 0; i < 3; i++) {
        int got;

        sigwait(set, &got);
        sum += got;
    }
    return (void *)sum;
}

static void *wait_for_one(void *set)
{
    int got;

    sigwait(set, &got);
    return NULL;
}

int main(void)
{
    sigset_t by_descriptor = set_of(SIGUSR1, SIGUSR1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &by_descriptor, NULL);
    int descriptor = signalfd(-1, &by_descriptor, 0);
    kill(getpid(), SIGUSR1);
    struct signalfd_siginfo info;
    ssize_t size = read(descriptor, &info, sizeof info);
    printf("read %d %d\n", size == sizeof info, info.ssi_signo);

    struct sigaction action = { .sa_handler = handler };
    sigaction(SIGUSR2, &action, NULL);
    sigset_t with_handler = set_of(SIGUSR2, SIGUSR2, SIGUSR2);
    sigprocmask(SIG_BLOCK, &with_handler, NULL);
    raise(SIGUSR2);
    sigset_t pending;
    sigpending(&pending);
    printf("blocked: pending %d, handled %d\n", sigismember(&pending, SIGUSR2), handled);
    sigprocmask(SIG_UNBLOCK, &with_handler, NULL);
    printf("unblocked: handled %d\n", handled);
    raise(SIGUSR2);
    raise(SIGUSR2);
    printf("again: handled %d\n", handled);

    sigset_t waited_for = set_of(SIGTERM, SIGALRM, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waited_for, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, waiter, &waited_for);
    kill(getpid(), SIGTERM);
    ualarm(50000, 0);
    if (fork() == 0)
        _exit(3);
    void *sum;
    pthread_join(thread, &sum);
    printf("waited: %ld\n", (long)sum);
    wait(NULL);
    for (int i = 0; i < 20; i++) { // Sent while the thread is only just beginning.
        pthread_create(&thread, NULL, wait_for_one, &waited_for);
        pthread_kill(thread, SIGTERM);
        pthread_join(thread, NULL);
    }

    struct timespec moment = { 0, 1000000 };
    int result = sigtimedwait(&waited_for, NULL, &moment);
    printf("timed: %d %s\n", result, strerror(errno));
    sigqueue(getpid(), SIGTERM, (union sigval) { .sival_int = 77 });
    siginfo_t queued;
    result = sigwaitinfo(&waited_for, &queued);
    printf("queued: %d %d\n", result, queued.si_value.sival_int);

    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, &with_handler, NULL);
    raise(SIGUSR2);
    sigsuspend(&none);
    printf("suspended: handled %d\n", handled);
    fflush(stdout);
    execl("/bin/sh", "sh", "-c", "kill -TERM $$; echo survived", NULL);
    return 1;
}
