// A lock-free stack of nodes: pushed with compare-and-swap, taken all at once with an exchange.
// clean
#include "start.h"
#include <sched.h>
#include <stdatomic.h>

struct node {
    struct node *next;
    int value;
};

_Atomic(struct node *) top;

static void *producer(void *unused)
{
    for (int i = 0; i < 20; i++) {
        struct node *node = malloc(sizeof *node);
        node->value = i;
        node->next = atomic_load_explicit(&top, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&top, &node->next, node, memory_order_release,
                                                      memory_order_relaxed))
            ;
    }
    return unused;
}

static void *consumer(void *result)
{
    for (int taken = 0; taken < 20;) {
        struct node *node = atomic_exchange_explicit(&top, NULL, memory_order_acquire);
        if (!node)
            sched_yield();
        while (node) {
            struct node *next = node->next;
            *(int *)result += node->value;
            free(node);
            node = next;
            taken++;
        }
    }
    return NULL;
}

int main(void)
{
    int sum = 0;
    pthread_t from = start(producer, NULL);
    pthread_t to = start(consumer, &sum);
    finish(from);
    finish(to);
    printf("%d\n", sum);
    return 0;
}
