// A list of free blocks: who gives one back puts it in front, who needs one takes the first, each under the lock. What was done to
// a block before it was given back comes before what is done with it afterwards, also where the link that was read to find
// it is replaced by another at once.
// clean
#include "steps.h"
#include "start.h"

struct block {
    struct block *next, *previous;
    int use;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct block blocks[3];
struct block *first;

static void give_back(struct block *block)
{
    pthread_mutex_lock(&lock);
    block->previous = NULL;
    block->next = first;
    if (first)
        first->previous = block;
    first = block;
    pthread_mutex_unlock(&lock);
}

static struct block *take(void)
{
    pthread_mutex_lock(&lock);
    struct block *block = first;
    first = block->next;
    if (first)
        first->previous = NULL; // of a block that is left for others
    pthread_mutex_unlock(&lock);
    return block;
}

static void *gives_and_takes(void *unused)
{
    for (int i = 0; i < 3; i++) {
        blocks[i].use = 1;
        give_back(&blocks[i]);
    }
    take()->use = 2;
    step_done(1);
    return unused;
}

static void *takes(void *unused)
{
    step_wait(1);
    struct block *block = take();
    block->previous = block->next = NULL;
    block->use = 3;
    return unused;
}

int main(void)
{
    both(gives_and_takes, takes);
    puts("done");
    return 0;
}
