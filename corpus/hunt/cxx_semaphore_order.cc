// Two pools of permits taken in opposite orders.
// fails: deadlock
#include "stagger.h"
#include <semaphore>
#include <thread>

static std::counting_semaphore<4> connections(1), buffers(1);

int main()
{
    std::thread one([] {
        connections.acquire();
        buffers.acquire();
        buffers.release();
        connections.release();
    });
    std::thread other([] {
        work(LATE);
        buffers.acquire();
        connections.acquire();
        connections.release();
        buffers.release();
    });
    one.join();
    other.join();
}
