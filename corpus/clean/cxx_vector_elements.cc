// Different elements of one vector are different locations.
// clean
#include <cstdio>
#include <thread>
#include <vector>

std::vector<char> values(8);

static void fill(int from, int to)
{
    for (int i = from; i < to; i++)
        values[i] = 1;
}

int main()
{
    std::thread a(fill, 0, 4), b(fill, 4, 8);
    a.join();
    b.join();
    int sum = 0;
    for (char value : values)
        sum += value;
    std::printf("%d\n", sum);
}
