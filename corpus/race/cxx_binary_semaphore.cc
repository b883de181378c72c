// The semaphore is released before the slot is written.
#include <cstdio>
#include <semaphore>
#include <thread>

std::binary_semaphore full(0);
int slot;

static void producer()
{
    full.release();
    slot = 42; // race: slot
}

static void consumer()
{
    full.acquire();
    slot++; // race: slot
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", slot);
}
