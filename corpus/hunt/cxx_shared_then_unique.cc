// Read under the shared side, written under the exclusive one, and not read again in between.
// fails: assertion
#include "stagger.h"
#include <cassert>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::shared_mutex lock;
static int value;

static void increase()
{
    int seen;
    {
        std::shared_lock<std::shared_mutex> held(lock);
        seen = value;
    }
    std::unique_lock<std::shared_mutex> held(lock);
    value = seen + 1;
}

int main()
{
    std::thread one(increase);
    std::thread other([] {
        rest();
        increase();
    });
    one.join();
    other.join();
    assert(value == 2);
}
