// exit: 3
// Children of a program with threads: they allocate, lock, exit; the parent waits for each.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int stop;
static void *busy(void *unused) {
    while (!stop) {
        pthread_mutex_lock(&lock);
        free(malloc(100));
        pthread_mutex_unlock(&lock);
        usleep(100);
    }
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, busy, 0);
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            free(malloc(5000));
            _exit(i);
        }
        int status;
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    stop = 1;
    pthread_join(thread, 0);
    printf("%d\n", sum);
    fflush(stdout);
    if (fork() == 0) exit(0);
    wait(0);
    return 3;
}
