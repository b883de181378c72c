// Timers of all kinds, read, waited for and slept through: what they say is a matter of virtual time.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>
static volatile sig_atomic_t alarms;
static void on_alarm(int signal) { (void)signal; alarms++; }
static long seconds(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec - 1000; }
static void on_timer(union sigval value) { printf("thread told %d at %ld\n", value.sival_int, seconds()); }
static void *reader(void *unused) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec every = {{100, 0}, {50, 0}};
    timerfd_settime(fd, 0, &every, NULL);
    uint64_t count;
    for (int i = 0; i < 2; i++) {
        struct pollfd one = {fd, POLLIN, 0};
        int ready = i ? poll(&one, 1, -1) : 1;
        if (read(fd, &count, 8) != 8) abort();
        printf("timerfd %d %lu at %ld\n", ready, count, seconds());
    }
    sleep(250);
    if (read(fd, &count, 8) != 8) abort();
    printf("timerfd %lu at %ld\n", count, seconds());
    close(fd);
    return unused;
}
int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    alarm(1000);
    int slept = usleep(100);
    printf("left %u\n", alarm(30));
    pause();
    printf("alarm %d at %ld, %d\n", alarms, seconds(), slept);
    struct itimerval soon = {{0, 1000}, {0, 2000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    while (alarms < 4) {}
    memset(&soon, 0, sizeof soon);
    setitimer(ITIMER_REAL, &soon, NULL);
    printf("alarms %d at %ld\n", alarms, seconds());
    pthread_t thread;
    pthread_create(&thread, NULL, reader, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = on_timer, .sigev_value.sival_int = 42};
    timer_t timer;
    if (timer_create(CLOCK_REALTIME, &event, &timer)) perror("timer_create");
    struct itimerspec once = {{0, 0}, {70, 0}};
    timer_settime(timer, 0, &once, NULL);
    sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR1); pthread_sigmask(SIG_BLOCK, &set, NULL);
    struct timespec ten = {1, 0};
    printf("sigtimedwait %d", sigtimedwait(&set, NULL, &ten)); printf(" at %ld\n", seconds());
    pthread_join(thread, NULL);
    timer_delete(timer);
    struct rusage used;
    struct tms all;
    getrusage(RUSAGE_SELF, &used);
    times(&all);
    printf("used %ld %ld\n", (long)used.ru_utime.tv_sec, (long)all.tms_utime / 100);
    return 0;
}
