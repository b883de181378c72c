// One thread puts a block into a slot, another takes it out and leaves the slot empty, each under the lock; the block is
// used without it. Correct: the taker's section writes the slot, too, but would have found nothing had it come first.
// clean
#include "start.h"
#include <sched.h>

struct block {
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct block *slot;

static void *giver(void *unused)
{
    for (int i = 0; i < 3; i++) {
        struct block *block = malloc(sizeof *block);
        int put = 0;

        if (!block)
            abort();
        block->value = i;
        while (!put) {
            pthread_mutex_lock(&lock);
            if (!slot) {
                slot = block;
                put = 1;
            }
            pthread_mutex_unlock(&lock);
            sched_yield();
        }
    }
    return unused;
}

static void *taker(void *unused)
{
    for (int i = 0; i < 3; i++) {
        struct block *block = NULL;

        while (!block) {
            pthread_mutex_lock(&lock);
            block = slot;
            slot = NULL;
            pthread_mutex_unlock(&lock);
            sched_yield();
        }
        block->value++;
        free(block);
    }
    return unused;
}

int main(void)
{
    both(giver, taker);
    puts("done");
    return 0;
}
