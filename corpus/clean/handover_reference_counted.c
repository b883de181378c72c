// Something whose references are counted is handed over under a lock; the receiver looks at the count, and gives the
// list's reference back before it leaves the section. Correct: it has found the pointer that was put there. What C++'s
// std::shared_ptr does when it is taken out of a queue.
// clean
#include "steps.h"
#include "start.h"
#include <stdatomic.h>

struct thing {
    atomic_int references;
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct thing *queued;

static void *producer(void *unused)
{
    struct thing *thing = malloc(sizeof *thing);
    atomic_init(&thing->references, 3); /* of the producer, of the list, and one that stays */
    thing->value = 42;
    pthread_mutex_lock(&lock);
    queued = thing;
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&thing->references, 1);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    struct thing *thing = queued;
    if (thing && atomic_load_explicit(&thing->references, memory_order_acquire) > 1)
        atomic_fetch_sub(&thing->references, 1);
    pthread_mutex_unlock(&lock);
    if (thing)
        printf("%d\n", thing->value);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    free(queued);
    return 0;
}
