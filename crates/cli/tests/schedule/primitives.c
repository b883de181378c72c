// A barrier, a read/write lock, a semaphore, sleeping while it is held, and a once.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t barrier;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static unsigned written, order;
static void first(void) { order++; }
static void *work(void *argument) {
    int who = (int)(long)argument;
    for (int round = 0; round < 8; round++) {
        pthread_barrier_wait(&barrier);
        if ((round + who) % 3 == 0) {
            pthread_rwlock_wrlock(&lock);
            written = written * 31 + (unsigned)who;
        } else {
            pthread_rwlock_rdlock(&lock);
        }
        pthread_rwlock_unlock(&lock);
        sem_wait(&semaphore);
        order = order * 33 + (unsigned)who;
        usleep(1000 * (unsigned)who);
        sem_post(&semaphore);
        pthread_once(&once, first);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[3];
    pthread_barrier_init(&barrier, NULL, 3);
    sem_init(&semaphore, 0, 1);
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%x %x\n", written, order);
    return 0;
}
