// A pool of the program's own: nodes go back to a free list under a lock and are taken out again by others, who use them
// without it. Correct: who takes a node reads the link that was written when it was given back.
// clean
#include "start.h"

struct node {
    struct node *next;
    int value;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct node nodes[2];
struct node *available;

static struct node *take(void)
{
    struct node *node;

    pthread_mutex_lock(&lock);
    node = available;
    if (node)
        available = node->next;
    pthread_mutex_unlock(&lock);
    return node;
}

static void give(struct node *node)
{
    pthread_mutex_lock(&lock);
    node->next = available;
    available = node;
    pthread_mutex_unlock(&lock);
}

static void *worker(void *unused)
{
    for (int i = 0; i < 10; i++) {
        struct node *mine = take();
        if (mine) {
            mine->value = i;
            mine->value++;
            give(mine);
        }
    }
    return unused;
}

int main(void)
{
    give(&nodes[0]);
    give(&nodes[1]);
    both(worker, worker);
    puts("done");
    return 0;
}
