// std::condition_variable::wait with a predicate, the signal lost before the wait: the loop is inside the library's
// template, and the predicate is a lambda.
// clean
#include "steps.h"
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

std::mutex guard;
std::condition_variable changed;
bool ready;
int message;

static void producer()
{
    message = 42;
    {
        std::lock_guard<std::mutex> held(guard);
        ready = true;
    }
    changed.notify_one();
    step_done(1);
}

static void consumer()
{
    step_wait(1);
    {
        std::unique_lock<std::mutex> held(guard);
        changed.wait(held, [] { return ready; });
    }
    message++;
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", message);
}
