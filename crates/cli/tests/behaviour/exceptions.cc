// exit: 0
// variants: -O0|-O2|-O2 -static
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static std::mutex lock;
static int depth(int n) {
    std::lock_guard<std::mutex> *guard = nullptr;
    if (n == 0) {
        std::lock_guard<std::mutex> inner(lock);
        throw std::runtime_error("deep");
    }
    std::string kept(40, 'x');
    return depth(n - 1) + (int)kept.size() + (guard != nullptr);
}
int main() {
    int caught = 0;
    std::vector<std::thread> threads;
    std::mutex counting;
    for (int t = 0; t < 3; t++)
        threads.emplace_back([&] {
            for (int i = 0; i < 100; i++) try {
                    depth(i % 10);
                } catch (const std::runtime_error &) {
                    std::lock_guard<std::mutex> guard(counting);
                    caught++;
                }
        });
    for (auto &thread : threads) thread.join();
    auto future = std::async(std::launch::async, []() -> int { throw std::logic_error("from a future"); });
    try {
        future.get();
    } catch (const std::exception &e) {
        std::printf("%s %d\n", e.what(), caught);
    }
    try {
        std::string().at(3);
    } catch (const std::out_of_range &) {
        std::puts("from the library");
    }
}
