// Counting the owners of an object protects the counter, not the object.
#include <cstdio>
#include <memory>
#include <thread>

struct Table {
    int uses = 0;
};

static void use(std::shared_ptr<Table> table)
{
    table->uses++; // race: heap table
}

int main()
{
    auto table = std::make_shared<Table>();
    std::thread a(use, table), b(use, table);
    a.join();
    b.join();
    std::printf("%d\n", table->uses);
}
