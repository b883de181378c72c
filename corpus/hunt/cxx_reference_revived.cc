// Looking up adds a user to an object that may just have lost its last one.
// fails: abort
#include "stagger.h"
#include <atomic>
#include <cstdlib>
#include <thread>

struct Object {
    std::atomic<int> users{1};
    std::atomic<bool> destroyed{false};
};

static Object object;
static std::atomic<Object *> table{&object};

static void drop(Object *mine)
{
    if (mine->users.fetch_sub(1) == 1) {
        table.store(nullptr);
        mine->destroyed.store(true);
    }
}

static void look_up()
{
    work(LATE);
    Object *found = table.load();
    if (found == nullptr)
        return;
    found->users.fetch_add(1);
    if (found->destroyed.load())
        std::abort();
    drop(found);
}

int main()
{
    std::thread one(drop, &object);
    std::thread other(look_up);
    one.join();
    other.join();
}
