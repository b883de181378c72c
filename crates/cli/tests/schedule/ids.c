// Everything a program does with the numbers of its threads and processes. Prints the numbers first, then
// lines that do not depend on them.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals, expired;
static pthread_mutex_t robust, inheriting;
static int numbers[4];

static void handler(int signal) { (void)signal, signals++; }
static void expire(union sigval value) { expired = value.sival_int; }

static void *other(void *nothing) {
    numbers[3] = syscall(SYS_gettid);
    pthread_mutex_lock(&inheriting);
    pthread_mutex_unlock(&inheriting);
    while (!signals)
        usleep(1000);
    pthread_mutex_lock(&robust);
    return nothing;
}

static void read_own(const char *format, int id) {
    char path[64], line[32] = "";
    sprintf(path, format, id);
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof line, file))
        line[strcspn(line, "\n")] = 0;
    printf("%s\n", line);
}

int main(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &kind);
    signal(SIGUSR1, handler);
    pid_t own = getpid();
    numbers[0] = own, numbers[1] = syscall(SYS_gettid), numbers[2] = getppid();

    pthread_mutex_lock(&inheriting);
    pthread_t thread;
    pthread_create(&thread, 0, other, 0);
    while (!__atomic_load_n(&numbers[3], __ATOMIC_ACQUIRE))
        sched_yield();
    printf("%d %d %d %d\n", numbers[0], numbers[1], numbers[2], numbers[3]);
    char name[16];
    pthread_setname_np(thread, "worker");
    pthread_getname_np(thread, name, sizeof name);
    struct sched_param parameters;
    int policy, fails = pthread_getschedparam(thread, &policy, &parameters);
    printf("%s, scheduling %s\n", name, strerror(fails));
    read_own("/proc/self/task/%d/comm", numbers[3]);
    pthread_mutex_unlock(&inheriting);
    printf("pthread_kill: %s\n", strerror(pthread_kill(thread, SIGUSR1)));
    pthread_join(thread, 0);
    printf("robust lock: %s\n", strerror(pthread_mutex_lock(&robust)));

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child: %d %d\n", getppid() == own, getpid() != own);
        fflush(stdout);
        kill(own, SIGUSR1);
        _exit(0);
    }
    waitpid(child, 0, 0);
    printf("signals: %d\n", (int)signals);
    kill(own, SIGUSR1);
    printf("signals: %d, there: %d\n", (int)signals, kill(own, 0));
    read_own("/proc/%d/comm", own);

    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 7};
    event.sigev_notify_function = expire;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec soon = {.it_value.tv_nsec = 1000000};
    timer_settime(timer, 0, &soon, 0);
    while (!expired)
        usleep(1000);
    printf("timer: %d\n", (int)expired);
    fflush(stdout);
    raise(SIGTERM);
    return 1;
}
