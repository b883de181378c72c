// A call through the vtable while another thread's destructor changes the vtable pointer.
#include "steps.h"
#include <cstdio>
#include <thread>

struct Base {
    virtual ~Base() {} // race: heap object
    virtual int value() const { return 1; }
};

struct Derived : Base {
    int *data = new int(2);
    __attribute__((noinline)) ~Derived() override // race: heap object
    {
        delete data; // race: heap data; heap object
    }
    int value() const override { return *data; } // race: heap data; heap object
};

Base *object = new Derived; // block: heap object

static void user(int *seen)
{
    *seen = object->value(); // race: heap object
    step_done(1);
}

static void owner()
{
    step_wait(1);
    Base *mine = object;
    delete mine; // race: heap object
}

int main()
{
    int seen = 0;
    std::thread a(user, &seen), b(owner);
    a.join();
    b.join();
    std::printf("%d\n", seen);
}
