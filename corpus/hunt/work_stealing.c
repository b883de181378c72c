// A work-stealing queue whose owner takes the last item without looking whether a thief has it.
// fails: abort
#include "stagger.h"
#include "start.h"
#include <stdatomic.h>

static atomic_int head, tail = 3;
static atomic_int taken[3];

static void take(int item)
{
    if (atomic_fetch_add(&taken[item], 1) != 0)
        abort();
}

static void *owner(void *unused)
{
    for (;;) {
        int last = atomic_load(&tail) - 1;
        atomic_store(&tail, last);
        if (last < atomic_load(&head))
            return unused;
        take(last); // for the last item it should compete with thieves for head
    }
}

static void *thief(void *unused)
{
    work(LATE);
    int first = atomic_load(&head);
    if (first < atomic_load(&tail) && atomic_compare_exchange_strong(&head, &first, first + 1))
        take(first);
    return unused;
}

int main(void)
{
    both(owner, thief);
    return 0;
}
