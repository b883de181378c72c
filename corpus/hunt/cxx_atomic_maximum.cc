// The greatest so far: loaded, compared, stored. A greater one stored in between is lost.
// fails: assertion
#include "stagger.h"
#include <atomic>
#include <cassert>
#include <thread>

static std::atomic<int> greatest;

static void offer(int value)
{
    if (value > greatest.load())
        greatest.store(value);
}

int main()
{
    std::thread one(offer, 5);
    std::thread other([] {
        work(LATE);
        offer(9);
    });
    one.join();
    other.join();
    assert(greatest == 9);
}
