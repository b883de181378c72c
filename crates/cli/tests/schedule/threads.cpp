// C++ threads, async and condition variables.
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <vector>
int main() {
    std::mutex guard;
    std::condition_variable turn;
    unsigned order = 0;
    int done = 0;
    std::vector<std::thread> threads;
    for (unsigned who = 1; who <= 3; who++)
        threads.emplace_back([&, who] {
            for (int i = 0; i < 10; i++) {
                std::lock_guard<std::mutex> held(guard);
                order = order * 31 + who;
            }
            std::lock_guard<std::mutex> held(guard);
            done++;
            turn.notify_one();
        });
    {
        std::unique_lock<std::mutex> held(guard);
        turn.wait(held, [&] { return done == 3; });
    }
    auto future = std::async(std::launch::async, [] { return 42; });
    int answer = future.get();
    for (auto &thread : threads)
        thread.join();
    std::printf("%x %d\n", order, answer);
}
