// The last owner of a shared_ptr destroys what all owners have used: ordered by the counter.
// clean
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

static int destroyed;

struct Table {
    std::vector<int> values = std::vector<int>(16, 1);
    ~Table() { destroyed += values[3]; }
};

static void use(std::shared_ptr<Table> table, int *sum)
{
    for (int value : table->values)
        *sum += value;
}

int main()
{
    int one = 0, other = 0;
    auto table = std::make_shared<Table>();
    std::thread a(use, table, &one), b(use, table, &other);
    table.reset();
    a.join();
    b.join();
    std::printf("%d %d\n", one + other, destroyed);
}
