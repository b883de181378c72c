// The result is read inside the block whose end joins the jthread.
#include <cstdio>
#include <thread>

int rounds;

int main()
{
    int seen;
    {
        std::jthread worker([] {
            rounds = 1; // race: rounds
        });
        seen = rounds; // race: rounds
    }
    std::printf("%d\n", seen <= 1);
}
