// Children end and send signals while threads run: when the handlers run, and where, shows in the output. The threads
// lose an update now and then.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3
#define ROUNDS 400

static char trace[1 << 16];
static atomic_int length, ended, greeted;
static _Atomic pid_t children[CHILDREN];
static int balance;
static sem_t all_ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note(const char *text) {
    int size = (int)strlen(text), at = atomic_fetch_add(&length, size);
    if (at + size < (int)sizeof trace)
        memcpy(trace + at, text, size);
}

// None, if another thread handles the signal before its number is known.
static int number_of(pid_t id) {
    for (int i = 0; i < CHILDREN; i++)
        if (children[i] == id)
            return i;
    return -1;
}

static void on_end(int signal, siginfo_t *about, void *context) {
    (void)signal, (void)context;
    int before = errno, status;
    pid_t id;
    char line[96];
    snprintf(line, sizeof line, "[end %d code %d status %d]\n", number_of(about->si_pid), about->si_code,
             about->si_status);
    note(line);
    while ((id = waitpid(-1, &status, WNOHANG)) > 0) {
        snprintf(line, sizeof line, "[reaped %d]\n", WEXITSTATUS(status));
        note(line);
        if (atomic_fetch_add(&ended, 1) + 1 == CHILDREN)
            sem_post(&all_ended);
    }
    errno = before;
}

static void on_greeting(int signal, siginfo_t *about, void *context) {
    (void)signal, (void)context;
    char line[96];
    snprintf(line, sizeof line, "[greeting of %d code %d]\n", number_of(about->si_pid), about->si_code);
    note(line);
    greeted++;
}

static void *work(void *name) {
    for (int i = 0; i < ROUNDS; i++) {
        for (volatile int j = 0; j < 200; j++)
            ;
        if (i % 10 == 0)
            note(name);
    }
    pthread_mutex_lock(&lock);
    int seen = balance;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    balance = seen + 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int count, char **words) {
    pthread_t threads[2];
    struct sigaction action = {.sa_sigaction = on_end, .sa_flags = SA_SIGINFO};
    sigset_t both, before;
    sem_init(&all_ended, 0, 0);
    if (count > 1 && strcmp(words[1], "goes-on") == 0)
        action.sa_flags |= SA_RESTART;
    sigaction(SIGCHLD, &action, NULL);
    action.sa_sigaction = on_greeting;
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&both);
    sigaddset(&both, SIGCHLD);
    sigaddset(&both, SIGUSR1);
    for (int i = 0; i < CHILDREN; i++) {
        // The handlers know the children by their numbers.
        pthread_sigmask(SIG_BLOCK, &both, &before);
        children[i] = fork();
        if (children[i] == 0) {
            if (i == 1)
                kill(getppid(), SIGUSR1);
            usleep(1000 * i);
            _exit(10 + i);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (i == 0) {
            pthread_create(&threads[0], NULL, work, "a");
            pthread_create(&threads[1], NULL, work, "b");
        }
    }
    note("m");
    while (sem_wait(&all_ended) != 0)
        note("[interrupted]\n");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    printf("%s\n%d ended, %d greetings, balance %d\n", trace, ended, greeted, balance);
    return balance == 2 ? 0 : 3;
}
