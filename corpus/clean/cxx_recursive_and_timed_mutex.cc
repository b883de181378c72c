// std::recursive_mutex taken twice, std::timed_mutex taken in time.
// clean
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

std::recursive_mutex again;
std::timed_mutex timed;
int counter, timed_counter;

static void count(int depth)
{
    std::lock_guard<std::recursive_mutex> held(again);
    counter++;
    if (depth > 0)
        count(depth - 1);
    counter++;
}

static void work()
{
    count(3);
    if (timed.try_lock_for(std::chrono::minutes(5))) {
        timed_counter++;
        timed.unlock();
    }
}

int main()
{
    std::thread a(work), b(work);
    a.join();
    b.join();
    std::printf("%d %d\n", counter, timed_counter);
}
