// std::shared_mutex: shared_lock for reading, unique_lock for writing.
// clean
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <thread>

std::shared_mutex guard;
int value;

static void reader(int *sum)
{
    for (int i = 0; i < 10; i++) {
        std::shared_lock<std::shared_mutex> held(guard);
        *sum += value;
    }
}

static void writer()
{
    for (int i = 0; i < 10; i++) {
        std::unique_lock<std::shared_mutex> held(guard);
        value++;
    }
}

int main()
{
    int one = 0, other = 0;
    std::thread a(reader, &one), b(reader, &other), c(writer);
    a.join();
    b.join();
    c.join();
    std::printf("%d %d\n", value, one >= 0 && other >= 0);
}
