// Generic waits whose meaning depends on what was created (thesis 4.4), like those of Windows.
//
// watch: sync thread
// hooks: generic.toml
// build: gcc -O2 -g -pthread

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum kind { LOCK, SEMAPHORE, THREAD };
struct object {
    enum kind kind;
    pthread_mutex_t mutex;
    sem_t semaphore;
    pthread_t thread;
};

static struct object lock, tokens, child;

__attribute__((noipa)) struct object *new_lock(void)
{
    lock.kind = LOCK;
    pthread_mutex_init(&lock.mutex, NULL);
    return &lock;
}

__attribute__((noipa)) struct object *new_semaphore(int value)
{
    tokens.kind = SEMAPHORE;
    sem_init(&tokens.semaphore, 0, value);
    return &tokens;
}

__attribute__((noipa)) struct object *new_thread(void *(*start)(void *))
{
    child.kind = THREAD;
    pthread_create(&child.thread, NULL, start, NULL);
    return &child;
}

__attribute__((noipa)) int wait_for(struct object *object)
{
    switch (object->kind) {
    case LOCK: return pthread_mutex_trylock(&object->mutex);
    case SEMAPHORE: return sem_trywait(&object->semaphore);
    case THREAD: return pthread_join(object->thread, NULL);
    }
    return -1;
}

__attribute__((noipa)) int release(struct object *object)
{
    switch (object->kind) {
    case LOCK: return pthread_mutex_unlock(&object->mutex);
    case SEMAPHORE: return sem_post(&object->semaphore);
    case THREAD: return -1;
    }
    return -1;
}

// expect T2: thread-start by T1; thread-exit
static void *body(void *argument)
{
    return argument;
}

int main(void)                          // expect: thread-start
{
    struct object *l = new_lock();      // expect: lock-created lock.kind
    struct object *s = new_semaphore(1); // expect: semaphore-created tokens.kind 1
    struct object *t = new_thread(body); // expect: thread-create T2; thread-created T2
    int wrong = 0;
    wrong |= wait_for(l) != 0;          // expect: lock-requested lock.kind; lock-acquired lock.kind
    wrong |= wait_for(l) == 0;          // expect: lock-requested lock.kind; lock-failed lock.kind
    wrong |= release(l);                // expect: lock-released lock.kind either
    wrong |= wait_for(s) != 0;          // expect: semaphore-acquired tokens.kind
    wrong |= wait_for(s) == 0;          // Not granted.
    wrong |= release(s);                // expect: semaphore-post tokens.kind
    wrong |= wait_for(t) != 0;          // expect: thread-joined T2
    return wrong;
}
// expect: thread-exit
