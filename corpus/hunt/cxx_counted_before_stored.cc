// A task counts itself as done before its result is there.
// fails: assertion
#include "stagger.h"
#include <atomic>
#include <cassert>
#include <chrono>
#include <thread>

static std::atomic<int> pending{2}, sum{0};

static void task(int value)
{
    work(value * LATE);
    pending.fetch_sub(1);
    sum.fetch_add(value);
}

int main()
{
    std::thread one(task, 1), two(task, 2);
    while (pending.load() != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    assert(sum.load() == 3);
    one.join();
    two.join();
}
