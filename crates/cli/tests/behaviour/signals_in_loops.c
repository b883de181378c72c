// exit: 0
// events: no
// A timer's signal ends each loop. None makes a system call, and most of the time is spent watching what they do.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t rings;
static volatile char from[4096], to[4096];
static void *volatile block;
static int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void ring(int signal)
{
    (void)signal;
    rings = 0;
}

static void set_alarm(void)
{
    struct itimerval soon = {.it_value.tv_usec = 50000};

    rings = 1;
    setitimer(ITIMER_REAL, &soon, NULL);
}

// The same by a timer of another kind, which sends a signal of those that queue.
static void set_timer(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    struct itimerspec soon = {.it_value.tv_nsec = 50000000};
    timer_t timer;

    rings = 1;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, NULL);
}

static void loops(const char *whose)
{
    set_alarm();
    while (rings) {
        block = malloc(32);
        free(block);
    }
    printf("%s: malloc\n", whose);
    set_alarm();
    while (rings)
        memcpy((char *)to, (char *)from, 100);
    printf("%s: memcpy\n", whose);
    set_alarm();
    while (rings) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    printf("%s: lock\n", whose);
    set_alarm();
    while (rings)
        __atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST);
    printf("%s: atomic\n", whose);
    set_alarm();
    while (rings)
        for (size_t i = 0; i < sizeof to; i++)
            to[i] += from[i];
    printf("%s: accesses\n", whose);
    set_timer();
    while (rings) {
        block = malloc(32);
        free(block);
    }
    printf("%s: a queued one\n", whose);
}

static void *idles(void *unused)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void)
{
    struct sigaction action = {.sa_handler = ring};
    pthread_t thread;

    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGRTMIN + 1, &action, NULL);
    loops("alone");
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, idles, NULL);
    pthread_mutex_unlock(&lock);
    loops("with another");
    pthread_join(thread, NULL);
    return 0;
}
