// The pool's end sets its flag without the lock: a worker between its look and its wait sleeps for ever.
// fails: deadlock
#include "stagger.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable changed;
static std::atomic<bool> stop;

int main()
{
    std::thread worker([] {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [] { return stop.load(); });
    });
    rest();
    stop = true;
    changed.notify_all();
    worker.join();
}
