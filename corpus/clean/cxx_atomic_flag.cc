// A spin lock of std::atomic_flag, and the waiting form of C++20.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of atomics look like those of plain variables
#include <atomic>
#include <cstdio>
#include <thread>

std::atomic_flag lock = ATOMIC_FLAG_INIT;
std::atomic<bool> done{false};
int counter;

static void work()
{
    for (int i = 0; i < 20; i++) {
        while (lock.test_and_set(std::memory_order_acquire))
            std::this_thread::yield();
        counter++;
        lock.clear(std::memory_order_release);
    }
}

int main()
{
    std::thread a(work), b([] {
        work();
        done.store(true);
        done.notify_one();
    });
    done.wait(false);
    a.join();
    b.join();
    std::printf("%d\n", counter);
}
