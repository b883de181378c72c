// A read/write lock whose readers may become writers once they are alone: two who want to wait for each other.
// fails: deadlock
#include "stagger.h"
#include "start.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int readers, writing, value;

static void read_lock(void)
{
    pthread_mutex_lock(&lock);
    while (writing)
        pthread_cond_wait(&changed, &lock);
    readers++;
    pthread_mutex_unlock(&lock);
}

static void upgrade(void)
{
    pthread_mutex_lock(&lock);
    while (readers > 1)
        pthread_cond_wait(&changed, &lock);
    readers--;
    writing = 1;
    pthread_mutex_unlock(&lock);
}

static void write_unlock(void)
{
    pthread_mutex_lock(&lock);
    writing = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *raise_value(void *late)
{
    if (late)
        work(LATE);
    read_lock();
    if (value < 10) {
        upgrade();
        value++;
        write_unlock();
    }
    return NULL;
}

int main(void)
{
    pthread_t one = start(raise_value, NULL);
    pthread_t other = start(raise_value, &lock);
    finish(one);
    finish(other);
    return 0;
}
