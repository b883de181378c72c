// Signals that a process sends itself: handlers look who sent them, glibc's own too (pthread_cancel, setuid), and
// processor time, which no wait uses up.
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static sem_t never, ready;
static volatile int handled, profiled;

static void *waits(void *unused) {
    sem_post(&ready);
    sem_wait(&never);
    return unused;
}

static void *computes(void *unused) {
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    sem_post(&ready);
    for (volatile long i = 0;; i++) continue;
    return unused;
}

static void cancel(void *(*body)(void *)) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, body, NULL);
    sem_wait(&ready);
    assert(pthread_cancel(thread) == 0);
    pthread_join(thread, &result);
    assert(result == PTHREAD_CANCELED);
}

static void handler(int signal, siginfo_t *about, void *unused) {
    (void)signal, (void)unused;
    handled += about->si_pid == getpid();
}

static void count(int signal) {
    profiled += signal == SIGPROF;
}

static void *sends(void *first) {
    assert(pthread_kill(*(pthread_t *)first, SIGUSR1) == 0);
    return NULL;
}

int main(void) {
    sem_init(&never, 0, 0);
    sem_init(&ready, 0, 0);
    cancel(waits);
    cancel(computes);

    pthread_t thread, first = pthread_self();
    pthread_create(&thread, NULL, waits, NULL);
    sem_wait(&ready);
    assert(setuid(getuid()) == 0);
    pthread_cancel(thread);
    pthread_join(thread, NULL);

    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    sigaction(SIGUSR1, &action, NULL);
    kill(getpid(), SIGUSR1);
    raise(SIGUSR1);
    pthread_create(&thread, NULL, sends, &first);
    pthread_join(thread, NULL);
    while (handled < 3) sched_yield();

    sigset_t set;
    siginfo_t about;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR2);
    assert(sigwaitinfo(&set, &about) == SIGUSR2 && about.si_pid == getpid());
    int descriptor = signalfd(-1, &set, 0);
    struct signalfd_siginfo read_about;
    raise(SIGUSR2);
    assert(read(descriptor, &read_about, sizeof read_about) == sizeof read_about);
    assert(read_about.ssi_pid == (unsigned)getpid());

    signal(SIGPROF, count);
    struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_PROF, &each, NULL);
    struct timespec left = { 100, 0 };
    nanosleep(&left, NULL);
    assert(profiled < 100);
    clock_t before = clock();
    int seen = profiled;
    while (profiled < seen + 2) continue;
    assert(clock() - before >= 1000);
    setitimer(ITIMER_PROF, &none, NULL);
    printf("%d handled\n", handled);
    return 0;
}
