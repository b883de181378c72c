// The same where the consumer really waits, by condition_variable_any and wait_for.
// clean
#include "steps.h"
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

std::mutex guard;
std::condition_variable_any changed;
bool ready;
int message;

static void producer()
{
    step_wait(1);
    message = 42;
    {
        std::lock_guard<std::mutex> held(guard);
        ready = true;
        changed.notify_all();
    }
}

static void consumer()
{
    {
        std::unique_lock<std::mutex> held(guard);
        step_done(1);
        while (!changed.wait_for(held, std::chrono::seconds(10), [] { return ready; }))
            ;
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
