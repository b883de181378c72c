// A child that is followed has its own events: its thread starts anew, as the first of its process.
// One that becomes another program is that program from then on.
//
// watch: process sync thread
// options: --follow
// also: process-end
// build: gcc -O1 -g -pthread

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

// expect: thread-start
// expect P2.T1: thread-start
int main(void)
{
    int status;
    pthread_mutex_lock(&mutex);         // expect: lock-requested mutex; lock-acquired mutex
    pid_t child = fork();               // expect: process-forked
    if (child == 0) {
        pthread_mutex_unlock(&mutex);   // expect P2.T1: lock-released mutex
        _exit(3);                       // expect P2.T1: thread-exit
    }                                   // expect P2.T0: process-end 3
    waitpid(child, &status, 0);
    pthread_mutex_unlock(&mutex);       // expect: lock-released mutex
    return WEXITSTATUS(status) != 3;    // expect: thread-exit
}                                       // expect T0: process-end 0
