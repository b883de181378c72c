// std::atomic looked at once, not in a loop, with plain moves: the inlined call chain tells.
// clean
// needs: debug-info
// undecidable: without debug information the loads and stores are plain moves, like those of a racy twin
#include "steps.h"
#include <atomic>
#include <cstdio>
#include <thread>

std::atomic<int> ready;
int message;

static void producer()
{
    message = 42; // suspected: message
    ready.store(1, std::memory_order_release); // suspected: ready
    step_done(1);
}

static void consumer()
{
    step_wait(1);
    if (ready.load(std::memory_order_acquire)) // suspected: ready
        message++; // suspected: message
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", message);
}
