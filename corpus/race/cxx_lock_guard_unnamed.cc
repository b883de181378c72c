// `lock_guard(lock);` without a name declares nothing that lives: the lock is released in the same statement.
#include <cstdio>
#include <mutex>
#include <thread>

std::mutex guard;
int counter;

static void work()
{
    std::lock_guard<std::mutex>{guard};
    counter++; // race: counter
}

int main()
{
    std::thread a(work), b(work);
    a.join();
    b.join();
    std::printf("%d\n", counter);
}
