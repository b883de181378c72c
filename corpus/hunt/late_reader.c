// A reader takes the pointer under the lock and looks at the block after it: it may be gone.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

enum { ALIVE = 0x600d };
struct block {
    volatile int magic;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *current;

static struct block *make(void)
{
    struct block *block = malloc(sizeof *block);
    block->magic = ALIVE;
    return block;
}

static void *reader(void *unused)
{
    pthread_mutex_lock(&lock);
    struct block *mine = current;
    pthread_mutex_unlock(&lock);
    assert(mine->magic == ALIVE);
    return unused;
}

static void *replace(void *unused)
{
    struct block *fresh = make();
    rest();
    pthread_mutex_lock(&lock);
    struct block *old = current;
    current = fresh;
    pthread_mutex_unlock(&lock);
    old->magic = 0;
    free(old);
    return unused;
}

int main(void)
{
    current = make();
    both(reader, replace);
    return 0;
}
