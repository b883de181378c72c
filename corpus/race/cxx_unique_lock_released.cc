// A unique_lock that was unlocked early for speed, and an access that was added later below.
#include <cstdio>
#include <mutex>
#include <thread>

std::mutex guard;
int counter, total;

static void work()
{
    std::unique_lock<std::mutex> held(guard);
    counter++;
    held.unlock();
    total += 2; // race: total
}

int main()
{
    std::thread a(work), b(work);
    a.join();
    b.join();
    std::printf("%d %d\n", counter, total);
}
