// The promise is fulfilled before the message is written.
#include <cstdio>
#include <future>
#include <thread>

int message;

int main()
{
    std::promise<void> promise;
    std::future<void> future = promise.get_future();
    std::thread producer([&promise] {
        promise.set_value();
        message = 41; // race: message
    });
    future.get();
    message += 1; // race: message
    producer.join();
    std::printf("%d\n", message);
}
