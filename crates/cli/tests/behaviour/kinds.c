// exit: 6
// variants: |-static|-static-pie|-no-pie|-s|-s -static|-O2 -fomit-frame-pointer -fcf-protection=full
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static void *work(void *which) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        while (turn % 2 != (int)(long)which) pthread_cond_wait(&changed, &lock);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%d\n", turn);
    return 6;
}
