// A static local is initialised under the compiler's guard; later users only read it.
// clean
#include <cstdio>
#include <thread>
#include <vector>

static const std::vector<int> &table()
{
    static const std::vector<int> made(8, 3);
    return made;
}

static void work(int *sum)
{
    for (int value : table())
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
