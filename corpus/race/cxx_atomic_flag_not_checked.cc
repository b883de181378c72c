// test_and_set is called and its result ignored: the lock never locks anybody out.
#include "steps.h"
#include <atomic>
#include <cstdio>
#include <thread>

std::atomic_flag lock = ATOMIC_FLAG_INIT;
int counter;

static void first()
{
    (void)lock.test_and_set();
    counter++; // race: counter
    step_done(1);
    step_wait(2);
    lock.clear();
}

static void second()
{
    step_wait(1);
    (void)lock.test_and_set();
    counter++; // race: counter
    step_done(2);
}

int main()
{
    std::thread a(first), b(second);
    a.join();
    b.join();
    std::printf("%d\n", counter);
}
