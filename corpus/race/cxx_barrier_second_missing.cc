// std::barrier once a phase: the next phase's write meets this phase's read.
#include <barrier>
#include <cstdio>
#include <thread>

std::barrier<> phase(2);
int cells[2];
int sums[2];

static void work(int me)
{
    for (int i = 0; i < 5; i++) {
        cells[me] = i; // race: cells
        phase.arrive_and_wait();
        sums[me] += cells[1 - me]; // race: cells
    }
}

int main()
{
    std::thread a(work, 0), b(work, 1);
    a.join();
    b.join();
    std::printf("%d\n", sums[0] + sums[1] > 0);
}
