// A lock-free stack that compares addresses only: the head may be the same node again, and its successor not.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>
#include <stdatomic.h>

enum { NODES = 3 };
static struct node {
    struct node *_Atomic next;
    atomic_int users;
} nodes[NODES];
static struct node *_Atomic head;

static void push(struct node *node)
{
    struct node *old = atomic_load(&head);
    do
        atomic_store(&node->next, old);
    while (!atomic_compare_exchange_strong(&head, &old, node));
}

static struct node *pop(void)
{
    struct node *old = atomic_load(&head);
    do
        if (!old)
            return NULL;
    while (!atomic_compare_exchange_strong(&head, &old, atomic_load(&old->next)));
    assert(atomic_fetch_add(&old->users, 1) == 0); // nobody else has it
    return old;
}

static void release(struct node *node)
{
    atomic_fetch_sub(&node->users, 1);
    push(node);
}

static void *one(void *unused)
{
    pop();
    pop();
    return unused;
}

static void *other(void *unused)
{
    work(LATE);
    struct node *a = pop(), *b = pop();
    (void)b; // kept
    if (a)
        release(a);
    return unused;
}

int main(void)
{
    for (int i = 0; i < NODES; i++)
        push(&nodes[i]);
    both(one, other);
    return 0;
}
