// std::atomic with each memory order that publishes: release/acquire, acq_rel, seq_cst, consume.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of atomics look like those of plain variables
#include <atomic>
#include <cstdio>
#include <thread>

std::atomic<int> by_release, by_exchange, by_seq_cst;
std::atomic<int *> by_consume;
int messages[4];

static void producer()
{
    messages[0] = 1;
    by_release.store(1, std::memory_order_release);
    messages[1] = 1;
    by_exchange.exchange(1, std::memory_order_acq_rel);
    messages[2] = 1;
    by_seq_cst.store(1);
    messages[3] = 1;
    by_consume.store(&messages[3], std::memory_order_release);
}

static void consumer()
{
    while (!by_release.load(std::memory_order_acquire))
        ;
    messages[0]++;
    while (!by_exchange.load(std::memory_order_acquire))
        ;
    messages[1]++;
    while (!by_seq_cst.load())
        ;
    messages[2]++;
    int *published;
    while (!(published = by_consume.load(std::memory_order_consume)))
        ;
    ++*published;
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", messages[0] + messages[1] + messages[2] + messages[3]);
}
