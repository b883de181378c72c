// Swapping locks this, then the other; two swap with each other.
// fails: deadlock
#include "stagger.h"
#include <mutex>
#include <thread>
#include <utility>

struct Cell {
    std::mutex lock;
    int value = 0;

    void swap(Cell &other)
    {
        std::lock_guard<std::mutex> mine(lock);
        std::lock_guard<std::mutex> theirs(other.lock);
        std::swap(value, other.value);
    }
};

int main()
{
    static Cell a, b;
    std::thread one([] { a.swap(b); });
    std::thread other([] {
        work(LATE);
        b.swap(a);
    });
    one.join();
    other.join();
}
