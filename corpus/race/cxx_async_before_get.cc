// Main looks at what the task works on before it got the result.
#include <cstdio>
#include <future>

int progress;

int main()
{
    std::future<void> result = std::async(std::launch::async, [] {
        progress = 1; // race: progress
    });
    int seen = progress; // race: progress
    result.get();
    std::printf("%d\n", seen <= 1);
}
