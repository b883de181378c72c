// Children of a program that has one thread, which waits for their ends in every way there is; two threads then lose an
// update now and then.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ended;
static char trace[4096];
static int length;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;

static void on_end(int signal, siginfo_t *about, void *context) {
    (void)signal, (void)context;
    ended++;
    length += sprintf(trace + length, "[end code %d status %d]\n", about->si_code, about->si_status);
}

static void make(int status) {
    if (fork() == 0) {
        usleep(1000);
        _exit(status);
    }
}

static void *deposit(void *later) {
    // By itself it is right.
    for (volatile int i = 0; later && i < 100000; i++)
        ;
    pthread_mutex_lock(&lock);
    int seen = balance;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    balance = seen + 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_end, .sa_flags = SA_SIGINFO};
    sigset_t end, before;
    pthread_t a, b;
    sigemptyset(&end);
    sigaddset(&end, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);
    sigprocmask(SIG_BLOCK, &end, &before);
    make(5);
    while (ended < 1)
        sigsuspend(&before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    wait(NULL);
    make(6);
    while (ended < 2)
        sleep(1);
    wait(NULL);
    make(7);
    while (ended < 3)
        ;
    wait(NULL);
    make(8);
    while (wait(NULL) < 0)
        length += sprintf(trace + length, "[interrupted]\n");
    while (ended < 4)
        ;
    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, deposit, &b);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%sbalance %d\n", trace, balance);
    return balance == 2 ? 0 : 3;
}
