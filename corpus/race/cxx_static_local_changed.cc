// The guard protects the initialisation of a static local, not what is done to it later.
#include <cstdio>
#include <cstdlib>
#include <thread>

static int first_value()
{
    return std::getenv("HOME") ? 1 : 0;
}

static int &counter()
{
    static int value = first_value();
    return value;
}

static void work()
{
    counter() += 2; // race: value
}

int main()
{
    std::thread a(work), b(work);
    a.join();
    b.join();
    std::printf("%d\n", counter() >= 2);
}
