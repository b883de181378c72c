// A call through the vtable while another thread's destructor changes the vtable pointer. The object is in static memory,
// so that the pointer is all that races.
#include "steps.h"
#include <cstdio>
#include <new>
#include <thread>

#define KEEP_STORES __asm__ volatile("" : : : "memory")

struct Base {
    __attribute__((noinline)) virtual ~Base() { KEEP_STORES; } // race: storage
    virtual int value() const { return 1; }
};

struct Derived : Base {
    __attribute__((noinline)) ~Derived() override { KEEP_STORES; } // race: storage
    int value() const override { return 2; }
};

alignas(Derived) unsigned char storage[sizeof(Derived)];
Base *object;

static void user(int *seen)
{
    *seen = object->value(); // race: storage
    step_done(1);
}

static void owner()
{
    step_wait(1);
    object->~Base(); // race: storage
}

int main()
{
    int seen = 0;
    object = new (storage) Derived;
    std::thread a(user, &seen), b(owner);
    a.join();
    b.join();
    std::printf("%d\n", seen);
}
