// std::mutex by lock_guard, unique_lock, scoped_lock over two, and try_lock.
// clean
#include <cstdio>
#include <mutex>
#include <thread>

std::mutex first_lock, second_lock;
int first_counter, second_counter;

static void work()
{
    for (int i = 0; i < 10; i++) {
        {
            std::lock_guard<std::mutex> held(first_lock);
            first_counter++;
        }
        {
            std::scoped_lock held(first_lock, second_lock);
            first_counter++;
            second_counter++;
        }
        std::unique_lock<std::mutex> maybe(second_lock, std::try_to_lock);
        if (maybe)
            second_counter++;
    }
}

int main()
{
    std::thread a(work), b(work);
    a.join();
    b.join();
    std::printf("%d %d\n", first_counter, second_counter > 0);
}
