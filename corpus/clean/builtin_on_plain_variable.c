// gcc's __atomic builtins on a variable of plain type: correct, and in the binary nothing says so, not even with debug
// information. A finding at these lines is what an honest tool may say, and it must not be anywhere else.
// clean
// undecidable: __atomic_store_n and __atomic_load_n leave no trace in the binary
#include "steps.h"
#include "start.h"

int ready;
int message;

static void *producer(void *unused)
{
    message = 42; // suspected: message
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE); // suspected: ready
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) // suspected: ready
        message++; // suspected: message
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
