// One packaged task, a shared future that three threads wait for.
// clean
#include <cstdio>
#include <future>
#include <thread>

int table[4];

int main()
{
    std::packaged_task<void()> task([] {
        for (int i = 0; i < 4; i++)
            table[i] = i;
    });
    std::shared_future<void> done = task.get_future().share();
    int sums[3] = {};
    auto reader = [&done, &sums](int me) {
        std::shared_future<void> mine = done;
        mine.wait();
        for (int i = 0; i < 4; i++)
            sums[me] += table[i];
    };
    std::thread a(reader, 0), b(reader, 1), c(reader, 2);
    task();
    a.join();
    b.join();
    c.join();
    std::printf("%d\n", sums[0] + sums[1] + sums[2]);
}
