// __tsan_release and __tsan_acquire, as empty functions of the program: the same meaning as in an instrumented one.
// clean
#include "steps.h"
#include "start.h"

__attribute__((noinline)) void __tsan_release(void *address)
{
    __asm__ volatile("" : : "r"(address) : "memory");
}

__attribute__((noinline)) void __tsan_acquire(void *address)
{
    __asm__ volatile("" : : "r"(address) : "memory");
}

int message;

static void *producer(void *unused)
{
    message = 42;
    __tsan_release(&message);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    __tsan_acquire(&message);
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
