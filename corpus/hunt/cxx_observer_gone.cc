// The list of observers is copied under the lock and called after it: one may have been destroyed.
// fails: abort
#include "stagger.h"
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

struct Observer {
    std::atomic<bool> alive{true};

    void notify()
    {
        if (!alive)
            std::abort();
    }
};

static std::mutex lock;
static std::vector<Observer *> observers;
static Observer first, second; // their memory stays: `alive` says what a destructor would

static void notify_all()
{
    std::vector<Observer *> copy;
    {
        std::lock_guard<std::mutex> held(lock);
        copy = observers;
    }
    for (Observer *observer : copy)
        observer->notify();
}

static void remove(Observer &gone)
{
    {
        std::lock_guard<std::mutex> held(lock);
        observers.erase(std::find(observers.begin(), observers.end(), &gone));
    }
    gone.alive = false;
}

int main()
{
    observers = {&first, &second};
    std::thread one(notify_all);
    std::thread other([] {
        rest();
        remove(second);
    });
    one.join();
    other.join();
}
