// exit: 0
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;
static void *work(void *unused) {
    pthread_mutex_lock(&lock);
    count++;
    pthread_mutex_unlock(&lock);
    return 0;
}
int main(void) {
    for (int round = 0; round < 10; round++) {
        pthread_t threads[40];
        for (int i = 0; i < 40; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 40; i++) pthread_join(threads[i], 0);
    }
    printf("%d\n", count);
    return 0;
}
