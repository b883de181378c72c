// A jthread is joined by its destructor, and told to stop by a token.
// clean
#include <cstdio>
#include <stop_token>
#include <thread>

int rounds;

int main()
{
    {
        std::jthread worker([](std::stop_token stop) {
            do
                rounds++;
            while (!stop.stop_requested());
        });
        worker.request_stop();
    }
    std::printf("%d\n", rounds > 0);
}
