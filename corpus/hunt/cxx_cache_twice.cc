// A cache looks, computes, and stores without looking again: the value is computed twice.
// fails: exit 6
#include "stagger.h"
#include <map>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::map<int, int> cache;
static int computed;

static bool find(int key)
{
    std::lock_guard<std::mutex> held(lock);
    return cache.count(key) != 0;
}

static void store(int key, int value)
{
    std::lock_guard<std::mutex> held(lock);
    cache[key] = value;
    computed++;
}

static void get(int key)
{
    if (!find(key))
        store(key, key * key);
}

int main()
{
    std::thread one([] { get(7); });
    std::thread other([] {
        work(LATE);
        get(7);
    });
    one.join();
    other.join();
    return computed == 1 ? 0 : 6;
}
