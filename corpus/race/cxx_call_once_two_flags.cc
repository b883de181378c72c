// Two flags for one table: it is initialised twice, at once.
#include <cstdio>
#include <mutex>
#include <thread>

std::once_flag one_flag, other_flag;
int table;

static void prepare()
{
    table = 7; // race: table
}

static void work(std::once_flag *flag)
{
    std::call_once(*flag, prepare);
}

int main()
{
    std::thread a(work, &one_flag), b(work, &other_flag);
    a.join();
    b.join();
    std::printf("%d\n", table);
}
