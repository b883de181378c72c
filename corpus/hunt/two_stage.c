// Data in two stages, each with a lock of its own: who comes between sees the first without the second.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;
static int first, second;

static void *write_both(void *unused)
{
    pthread_mutex_lock(&first_lock);
    first = 1;
    pthread_mutex_unlock(&first_lock);
    pthread_mutex_lock(&second_lock);
    second = first + 1;
    pthread_mutex_unlock(&second_lock);
    return unused;
}

static void *read_both(void *unused)
{
    work(LATE);
    pthread_mutex_lock(&first_lock);
    int one = first;
    pthread_mutex_unlock(&first_lock);
    if (one == 0)
        return unused;
    pthread_mutex_lock(&second_lock);
    int two = second;
    pthread_mutex_unlock(&second_lock);
    assert(two == one + 1);
    return unused;
}

int main(void)
{
    both(write_both, read_both);
    return 0;
}
