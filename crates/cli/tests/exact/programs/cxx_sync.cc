// What the C++ library builds on pthreads: once flags, mutexes of every kind, conditions, threads.
//
// watch: sync
// build: g++ -O0 -g -pthread -std=c++17
// build: g++ -O2 -g -pthread -std=c++17
// build: g++ -O2 -g -pthread -std=c++17 -static-libstdc++ -static-libgcc

#include "order.h"
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>

static std::once_flag flag;
static std::mutex mutex;
static std::recursive_mutex again;
static std::shared_mutex gate;
static std::condition_variable ready;
static bool go;

static void other()
{
    std::unique_lock<std::mutex> lock(mutex);   // expect T2: lock-requested mutex; lock-acquired mutex
    done(0);
    ready.wait(lock, [] { return go; });        // expect T2: condition-wait-begin ready mutex; condition-wait-end ready mutex woken
    lock.unlock();                              // expect T2: lock-released mutex
    if (!mutex.try_lock())                      // expect T2: lock-requested mutex; lock-acquired mutex
        abort();
    done(1);
    await(2);
    mutex.unlock();                             // expect T2: lock-released mutex
}

static void body() {}

int main()
{
    std::call_once(flag, body);                 // expect: once-begin flag; once-end flag done; once-passed flag
    std::call_once(flag, body);                 // expect: once-passed flag
    std::thread thread(other);
    await(0);
    {
        std::lock_guard<std::mutex> lock(mutex); // expect: lock-requested mutex; lock-acquired mutex
        go = true;
    }                                           // expect: lock-released mutex
    ready.notify_one();                         // expect: condition-signal ready
    await(1);
    if (mutex.try_lock())                       // expect: lock-requested mutex; lock-failed mutex
        abort();
    done(2);
    thread.join();
    ready.notify_all();                         // expect: condition-signal ready all
    again.lock();                               // expect: lock-requested again; lock-acquired again
    again.lock();                               // expect: lock-requested again; lock-acquired again
    again.unlock();                             // expect: lock-released again
    again.unlock();                             // expect: lock-released again
    gate.lock();                                // expect: lock-requested gate; lock-acquired gate
    gate.unlock();                              // expect: lock-released gate either
    gate.lock_shared();                         // expect: lock-requested gate shared; lock-acquired gate shared
    gate.unlock_shared();                       // expect: lock-released gate either
    return 0;
}
