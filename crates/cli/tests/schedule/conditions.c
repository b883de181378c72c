// A bounded buffer with condition variables, and a wait that times out after five (virtual) seconds.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int queue[4], length, sum;
static unsigned order;
static void *produce(void *who) {
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&guard);
        while (length == 4)
            pthread_cond_wait(&emptied, &guard);
        queue[length++] = i + (int)(long)who * 1000;
        pthread_cond_signal(&filled);
        pthread_mutex_unlock(&guard);
    }
    return NULL;
}
static void *consume(void *who) {
    for (int i = 0; i < 40; i++) {
        pthread_mutex_lock(&guard);
        while (length == 0)
            pthread_cond_wait(&filled, &guard);
        int value = queue[--length];
        sum += value;
        order = order * 31 + (unsigned)(value + (int)(long)who);
        pthread_cond_signal(&emptied);
        pthread_mutex_unlock(&guard);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? produce : consume, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    pthread_mutex_lock(&guard);
    int result = pthread_cond_timedwait(&filled, &guard, &until);
    printf("%d %x %s\n", sum, order, result == ETIMEDOUT ? "timed out" : "woken");
    return 0;
}
