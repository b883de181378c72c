// Writing under a shared_lock.
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>

std::shared_mutex guard;
int value;

static void work()
{
    std::shared_lock<std::shared_mutex> held(guard);
    value++; // race: value
}

int main()
{
    std::thread a(work), b(work);
    a.join();
    b.join();
    std::printf("%d\n", value);
}
