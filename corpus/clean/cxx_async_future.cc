// std::async: what the task did is ordered before get().
// clean
#include <cstdio>
#include <future>

int side_effect;

int main()
{
    int input = 20;
    std::future<int> result = std::async(std::launch::async, [&input] {
        side_effect = 1;
        return input * 2;
    });
    int value = result.get();
    input = 0;
    std::printf("%d %d\n", value, side_effect);
}
