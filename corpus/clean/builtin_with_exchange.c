// The same with a sequentially consistent store: that is an `xchg`, which makes the address a synchronisation variable.
// clean
#include "steps.h"
#include "start.h"

int ready;
int message;

static void *producer(void *unused)
{
    message = 42;
    __atomic_store_n(&ready, 1, __ATOMIC_SEQ_CST);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    if (__atomic_load_n(&ready, __ATOMIC_SEQ_CST))
        message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
