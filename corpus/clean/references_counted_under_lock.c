// Two threads have a reference each to an object, counted under a lock; whoever gives up the last one frees it. Correct: the
// last one comes after all that the others did with the object before they gave up theirs.
// clean
#include "steps.h"
#include "start.h"

struct object {
    pthread_mutex_t lock;
    int references;
    int values[2];
};

static struct object *object;

static void give_up(struct object *mine)
{
    pthread_mutex_lock(&mine->lock);
    int left = --mine->references;
    pthread_mutex_unlock(&mine->lock);
    if (left == 0) {
        mine->values[0] += mine->values[1];
        pthread_mutex_destroy(&mine->lock);
        free(mine);
    }
}

static void *first(void *unused)
{
    object->values[0] = 1;
    give_up(object);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    object->values[1] = 2;
    step_wait(1);
    give_up(object);
    return unused;
}

int main(void)
{
    object = calloc(1, sizeof *object);
    if (!object)
        abort();
    pthread_mutex_init(&object->lock, NULL);
    object->references = 2;
    both(first, second);
    puts("done");
    return 0;
}
