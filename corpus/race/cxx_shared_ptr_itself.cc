// Two threads use the same shared_ptr object, one of them replaces it: the pointer itself is not protected.
#include <cstdio>
#include <memory>
#include <thread>

std::shared_ptr<int> current;

static void replace()
{
    current = std::make_shared<int>(2); // race: current
}

static void use(int *seen)
{
    *seen = current.get() != nullptr; // race: current
}

int main()
{
    int seen = 0;
    current = std::make_shared<int>(1);
    std::thread a(replace), b(use, &seen);
    a.join();
    b.join();
    std::printf("%d\n", seen);
}
