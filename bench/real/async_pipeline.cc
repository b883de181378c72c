// std::async, futures and a thread pool of packaged tasks: matrices are multiplied in parallel and reduced in a tree.
//
// usage: async_pipeline [matrices]     prints a checksum
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

using Matrix = std::vector<unsigned>;
constexpr int side = 16;

static Matrix product(const Matrix &a, const Matrix &b)
{
    Matrix result(side * side);
    for (int row = 0; row < side; row++)
        for (int column = 0; column < side; column++)
            for (int k = 0; k < side; k++)
                result[row * side + column] =
                    (result[row * side + column] + a[row * side + k] * b[k * side + column]) % 65521;
    return result;
}

static Matrix reduce(const std::vector<Matrix> &matrices, size_t from, size_t to)
{
    if (to - from == 1)
        return matrices[from];
    size_t middle = (from + to) / 2;
    auto left = std::async(std::launch::async, reduce, std::cref(matrices), from, middle);
    Matrix right = reduce(matrices, middle, to);
    return product(left.get(), right);
}

class Pool {
public:
    explicit Pool(int workers)
    {
        for (int i = 0; i < workers; i++)
            threads.emplace_back([this] { work(); });
    }

    ~Pool()
    {
        {
            std::lock_guard held(lock);
            stopping = true;
        }
        filled.notify_all();
        for (auto &thread : threads)
            thread.join();
    }

    std::future<Matrix> submit(std::function<Matrix()> job)
    {
        auto task = std::make_shared<std::packaged_task<Matrix()>>(std::move(job));
        {
            std::lock_guard held(lock);
            tasks.push_back(task);
        }
        filled.notify_one();
        return task->get_future();
    }

private:
    void work()
    {
        for (;;) {
            std::unique_lock held(lock);
            filled.wait(held, [this] { return stopping || !tasks.empty(); });
            if (tasks.empty())
                return;
            auto task = tasks.front();
            tasks.pop_front();
            held.unlock();
            (*task)();
        }
    }

    std::mutex lock;
    std::condition_variable filled;
    std::deque<std::shared_ptr<std::packaged_task<Matrix()>>> tasks;
    std::vector<std::thread> threads;
    bool stopping = false;
};

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 16;
    std::vector<Matrix> matrices;
    {
        Pool pool(2);
        std::vector<std::future<Matrix>> made;
        for (size_t i = 0; i < count; i++)
            made.push_back(pool.submit([i] {
                Matrix matrix(side * side);
                for (size_t k = 0; k < matrix.size(); k++)
                    matrix[k] = (unsigned)(i * 31 + k * 7);
                return matrix;
            }));
        for (auto &future : made)
            matrices.push_back(future.get());
    }
    Matrix all = reduce(matrices, 0, matrices.size());
    unsigned checksum = 0;
    for (unsigned value : all)
        checksum = checksum * 33 + value;
    std::printf("%08x\n", checksum);
}
