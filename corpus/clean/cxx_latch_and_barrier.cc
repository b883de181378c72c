// C++20: a latch that main waits for, and a barrier between phases.
// clean
// needs: debug-info
// undecidable: without debug information the plain loads and stores of the library's atomics look like those of plain
// variables
#include <barrier>
#include <cstdio>
#include <latch>
#include <thread>

std::latch finished(2);
std::barrier<> phase(2);
int cells[2];
int sums[2];

static void work(int me)
{
    for (int i = 0; i < 10; i++) {
        cells[me] = i;
        phase.arrive_and_wait();
        sums[me] += cells[1 - me];
        phase.arrive_and_wait();
    }
    finished.count_down();
}

int main()
{
    std::thread a(work, 0), b(work, 1);
    finished.wait();
    std::printf("%d\n", sums[0] + sums[1]);
    a.join();
    b.join();
}
