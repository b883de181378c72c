// The producer completes the message after notifying.
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
    {
        std::lock_guard<std::mutex> held(guard);
        ready = true;
    }
    changed.notify_one();
    message = 42; // race: message
}

static void consumer()
{
    {
        std::unique_lock<std::mutex> held(guard);
        changed.wait(held, [] { return ready; });
    }
    message++; // race: message
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", message);
}
