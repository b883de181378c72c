// The pointer is atomic; what it points to is changed after it was published.
#include <atomic>
#include <cstdio>
#include <thread>

std::atomic<int *> published{nullptr};

static void producer()
{
    int *block = new int(1); // block: heap block
    published.store(block, std::memory_order_release);
    *block = 2; // race: heap block
}

static void consumer()
{
    int *seen;
    while (!(seen = published.load(std::memory_order_acquire)))
        ;
    *seen += 1; // race: heap block
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", *published.load() > 0);
}
