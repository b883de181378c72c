// The count is looked at again after the lock is given back: both may find that they were the last.
// fails: abort
#include "stagger.h"
#include "start.h"

struct object {
    pthread_mutex_t lock;
    volatile int users;
    char content[8192]; // too large for a thread's own cache of free blocks: the allocator notices
};
static struct object *object;

static void *user(void *late)
{
    if (late)
        work(LATE);
    pthread_mutex_lock(&object->lock);
    object->users--;
    pthread_mutex_unlock(&object->lock);
    if (object->users == 0)
        free(object);
    return NULL;
}

int main(void)
{
    object = malloc(sizeof *object);
    pthread_mutex_init(&object->lock, NULL);
    object->users = 2;
    pthread_t one = start(user, NULL);
    pthread_t other = start(user, &one);
    finish(one);
    finish(other);
    return 0;
}
