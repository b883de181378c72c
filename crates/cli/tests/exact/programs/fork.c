// A child that is not followed: the parent tells that it made one, and nothing of the child is seen.
//
// watch: process sync
// build: gcc -O1 -g -pthread

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
    int status;
    pid_t child = fork();               // expect: process-forked
    if (child == 0) {
        pthread_mutex_lock(&mutex);
        _exit(3);
    }
    waitpid(child, &status, 0);
    pthread_mutex_lock(&mutex);         // expect: lock-requested mutex; lock-acquired mutex
    return WEXITSTATUS(status) != 3;
}
