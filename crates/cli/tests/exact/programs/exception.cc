// Leaving hooked functions by an exception: also where a destructor on the way releases a lock,
// which happens before any return is seen. (An exception is an allocation: its object lies behind the
// 128 bytes that the library needs. In `take`, which is opaque, it is not seen to be written.)
//
// watch: function sync memory
// options: --place *
// hooks: left.toml
// build: g++ -O1 -g -pthread

static int lock, after, inside;

extern "C" __attribute__((noipa)) int risky(int jump)
{
    if (jump)
        throw jump;
    return 5;
}

extern "C" __attribute__((noipa)) int middle(int jump)
{
    return risky(jump) + 1;
}

extern "C" __attribute__((noipa)) int take(int *object, int jump)
{
    *(volatile int *)object = 1;
    if (jump)
        throw jump;
    return 0;
}

extern "C" __attribute__((noipa)) int give(int *object)
{
    *(volatile int *)object = 0;
    return 0;
}

struct Guard {
    ~Guard() { give(&lock); }
};

static void guarded()
{
    Guard guard;
    take(&lock, 1);
}

struct Write {
    ~Write() { *(volatile int *)&inside = 1; }
};

static void written()
{
    Write write;
    take(&lock, 2);
}

int main()
{
    middle(0);                          // expect: function-enter middle
                                        // expect: function-enter risky 0; function-exit risky = 5
                                        // expect: function-exit middle = 6
    try {
        middle(1);                      // expect: function-enter middle
                                        // expect: function-enter risky 1; write 4 block(132)+128
                                        // expect: function-exit risky = nothing; function-exit middle = nothing
    } catch (int) {
        *(volatile int *)&after = 1;    // expect: write 4 after
                                        // expect: free block(132)
    }
    try {
        take(&lock, 1);                 // expect: function-enter take; lock-requested lock
                                        // expect: lock-failed lock; function-exit take = nothing
    } catch (int) {
        *(volatile int *)&after = 2;    // expect: write 4 after
                                        // expect: free block(132)
    }
    // expect: function-enter take; lock-requested lock; lock-failed lock; function-exit take = nothing
    // expect: function-enter give; lock-released lock; function-exit give = 0
    try {
        guarded();
    } catch (int) {
        *(volatile int *)&after = 3;    // expect: write 4 after
                                        // expect: free block(132)
    }
    // expect: function-enter take; lock-requested lock; lock-failed lock; function-exit take = nothing
    // expect: write 4 inside
    try {
        written();
    } catch (int) {
        *(volatile int *)&after = 4;    // expect: write 4 after
                                        // expect: free block(132)
    }
    return 0;
}
