// exit: 0
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static int cleaned;
static void clean(void *unused) {
    cleaned++;
    pthread_mutex_unlock(&lock);
}
static void *waits(void *unused) {
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean, 0);
    for (;;) pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(0);
    return 0;
}
int main(void) {
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, waits, 0);
        usleep(2000);
        pthread_cancel(thread);
        void *result;
        pthread_join(thread, &result);
        if (result != PTHREAD_CANCELED) return 1;
    }
    printf("%d\n", cleaned);
    return pthread_mutex_trylock(&lock);
}
