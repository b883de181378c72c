// Double-checked locking as it is always written first: the pointer is read without the lock and without an atomic, so the
// reader may see the pointer and not what it points to. The pointer races with the locked write in every run. The contents
// are unordered too.
#include "steps.h"
#include "start.h"

struct table {
    int size;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct table *instance;

static struct table *get(void)
{
    if (!instance) { // race: instance
        pthread_mutex_lock(&lock);
        if (!instance) {
            struct table *made = malloc(sizeof *made); // block: heap table
            made->size = 8; // race: heap table
            instance = made; // race: instance
        }
        pthread_mutex_unlock(&lock);
    }
    return instance; // race: instance
}

static void *first(void *unused)
{
    get();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    return get()->size == 8 ? unused : NULL; // race: heap table
}

int main(void)
{
    both(first, second);
    printf("%d\n", instance->size);
    return 0;
}
