// What cannot be counted at once is not counted.
// fails: assertion
#include "stagger.h"
#include <cassert>
#include <mutex>
#include <thread>

static std::mutex lock;
static int count;

static void add()
{
    if (lock.try_lock()) {
        count++;
        lock.unlock();
    }
}

int main()
{
    std::thread one(add);
    std::thread other([] {
        work(LATE);
        add();
    });
    one.join();
    other.join();
    assert(count == 2);
}
