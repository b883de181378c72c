// exit: 4
// Detached threads that still run, or wait for a lock, when the process ends.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long spins;
static void *spin(void *unused) {
    for (;;) spins++;
}
static void *stuck(void *unused) {
    pthread_mutex_lock(&lock);
    return 0;
}
int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&lock);
    pthread_t thread;
    pthread_create(&thread, &attributes, spin, 0);
    pthread_create(&thread, &attributes, stuck, 0);
    usleep(20000);
    puts("leaving");
    return 4;
}
// events: no
