// Atomics inside a heap object, relaxed: nothing to report about the atomics themselves.
// clean
// needs: debug-info
// undecidable: relaxed loads and stores are plain moves, and heap memory has no type in the binary
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

struct Statistics {
    std::atomic<long> last{0};
    std::atomic<long> best{0};
};

int main()
{
    auto statistics = std::make_unique<Statistics>();
    auto work = [&statistics](long value) {
        statistics->last.store(value, std::memory_order_relaxed); // suspected: heap statistics
        if (statistics->best.load(std::memory_order_relaxed) < value) // suspected: heap statistics
            statistics->best.store(value, std::memory_order_relaxed); // suspected: heap statistics
    };
    std::thread a(work, 1), b(work, 2);
    a.join();
    b.join();
    std::printf("%d\n", statistics->best.load() > 0);
}
