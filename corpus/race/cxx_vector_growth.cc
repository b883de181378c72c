// One thread appends to a vector, another asks for its size.
#include <cstdio>
#include <thread>
#include <vector>

std::vector<int> values;

static void append()
{
    values.push_back(1); // race: values
}

static void look(bool *empty)
{
    *empty = values.empty(); // race: values
}

int main()
{
    bool empty = false;
    std::thread a(append), b(look, &empty);
    a.join();
    b.join();
    std::printf("%zu\n", values.size());
}
