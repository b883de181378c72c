// Two threads that take turns at a lock: about the smallest program that is worth hunting in.
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance;
static void *deposit(void *unused) {
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        int seen = balance;
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&lock);
        balance = seen + 1;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, deposit, NULL);
    pthread_create(&b, NULL, deposit, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d\n", balance);
    return 0;
}
