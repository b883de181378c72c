// Counting the owners of an object protects the counter, not the object. Both threads are there before either goes on: copying
// the pointer for the second is an atomic update, which would order it after a first one that is done already.
#include "steps.h"
#include <cstdio>
#include <memory>
#include <thread>

struct Table {
    int uses = 0;
};

static void use(std::shared_ptr<Table> table)
{
    step_wait(1);
    table->uses++; // race: heap table
}

int main()
{
    auto table = std::make_shared<Table>();
    std::thread a(use, table), b(use, table);
    step_done(1);
    a.join();
    b.join();
    std::printf("%d\n", table->uses);
}
