// The latch is counted down before the work is done.
#include <cstdio>
#include <latch>
#include <thread>

std::latch finished(1);
int result;

static void work()
{
    finished.count_down();
    result = 42; // race: result
}

int main()
{
    std::thread worker(work);
    finished.wait();
    std::printf("%d\n", result >= 0); // race: result
    worker.join();
}
