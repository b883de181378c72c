// C++20 semaphores hand items over, and hand the room for them back.
// clean
#include <cstdio>
#include <semaphore>
#include <thread>

std::counting_semaphore<2> full(0);
std::counting_semaphore<2> room(2);
int slots[2];
int sum;

static void producer()
{
    for (int i = 0; i < 20; i++) {
        room.acquire();
        slots[i % 2] = i;
        full.release();
    }
}

static void consumer()
{
    for (int i = 0; i < 20; i++) {
        full.acquire();
        sum += slots[i % 2];
        room.release();
    }
}

int main()
{
    std::thread a(producer), b(consumer);
    a.join();
    b.join();
    std::printf("%d\n", sum);
}
