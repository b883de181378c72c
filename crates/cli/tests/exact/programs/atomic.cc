// Atomics that compile to plain instructions, known by debug information: the inlined call chain, or
// the type of the variable.
//
// watch: memory
// options: --place *
// build: g++ -O2 -g
// build: g++ -O1 -g

#include <atomic>

static std::atomic<int> flag, counter;
static std::atomic<long *> pointer;
static int plain;
static long value;

int main()
{
    flag.store(1, std::memory_order_release);           // expect: atomic-write 4 flag
    flag.store(2);                                      // expect: atomic-update 4 flag
    int seen = flag.load(std::memory_order_acquire);    // expect: atomic-read 4 flag
    counter.fetch_add(seen);                            // expect: atomic-update 4 counter
    pointer.store(&value, std::memory_order_relaxed);   // expect: atomic-write 8 pointer
    long *to = pointer.load(std::memory_order_relaxed); // expect: atomic-read 8 pointer
    *(volatile long *)to = seen;                        // expect: write 8 value
    *(volatile int *)&plain = seen;                     // expect: write 4 plain
    return counter.exchange(0) != 2;                    // expect: atomic-update 4 counter
}
