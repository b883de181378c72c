// exit: 12
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void last(void) { puts("at exit"); }
static void *work(void *unused) {
    usleep(5000);
    exit(12);
}
int main(void) {
    atexit(last);
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    return 1;
}
