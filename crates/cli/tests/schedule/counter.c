// Threads add to a counter without a lock, and hash who came when under one.
#include <pthread.h>
#include <stdio.h>
static volatile long counter;
static unsigned order;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *add(void *who) {
    for (int i = 0; i < 20; i++) {
        counter++;
        pthread_mutex_lock(&guard);
        order = order * 31 + (unsigned)(long)who;
        pthread_mutex_unlock(&guard);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, add, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%ld %x\n", counter, order);
    return 0;
}
