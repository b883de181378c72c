// exit: 0
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *late(void *unused) {
    usleep(50000);
    puts("after main");
    return 0;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, late, 0);
    pthread_exit(0);
}
