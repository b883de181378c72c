// Looked at, then used: another thread lets go of it in between.
// fails: crash
#include "stagger.h"
#include <atomic>
#include <memory>
#include <thread>

struct Session {
    volatile int requests = 0;
};
static std::unique_ptr<Session> session = std::make_unique<Session>();

int main()
{
    std::thread user([] {
        if (session.get() != nullptr) {
            std::atomic_signal_fence(std::memory_order_seq_cst); // read it again, as written
            session->requests = session->requests + 1;
        }
    });
    std::thread closer([] {
        work(LATE);
        session.reset();
    });
    user.join();
    closer.join();
}
