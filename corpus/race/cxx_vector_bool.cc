// Elements of a vector<bool> share a byte: different elements, the same location.
#include <cstdio>
#include <thread>
#include <vector>

std::vector<bool> values(8);

static void fill(int element)
{
    values[element] = true; // race: heap values
}

int main()
{
    std::thread a(fill, 0), b(fill, 1);
    a.join();
    b.join();
    std::printf("%d\n", (int)values[0] + (int)values[1] > 0);
}
