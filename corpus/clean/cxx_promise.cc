// A promise hands data over: set_value before, future.get after.
// clean
#include <cstdio>
#include <future>
#include <thread>

int message;

int main()
{
    std::promise<int> promise;
    std::future<int> future = promise.get_future();
    std::thread producer([&promise] {
        message = 41;
        promise.set_value(1);
    });
    int added = future.get();
    message += added;
    producer.join();
    std::printf("%d\n", message);
}
