// std::call_once.
// clean
#include <cstdio>
#include <mutex>
#include <thread>

std::once_flag once;
int table[4];

static void work(int *sum)
{
    std::call_once(once, [] {
        for (int i = 0; i < 4; i++)
            table[i] = i + 1;
    });
    for (int value : table)
        *sum += value;
}

int main()
{
    int one = 0, other = 0;
    std::thread a(work, &one), b(work, &other);
    a.join();
    b.join();
    std::printf("%d\n", one + other);
}
