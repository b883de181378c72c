// Two threads append to one vector.
// fails: assertion
#include "stagger.h"
#include <cassert>
#include <thread>
#include <vector>

static std::vector<int> values;

int main()
{
    values.reserve(16);
    std::thread one([] { values.push_back(1); });
    std::thread other([] {
        work(LATE);
        values.push_back(2);
    });
    one.join();
    other.join();
    assert(values.size() == 2);
}
