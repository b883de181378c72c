// The thread uses what its creator sets after it has created it.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static volatile int *volatile result;

static void *worker(void *unused)
{
    rest(); // something else to do first
    assert(result);
    *result = 1;
    return unused;
}

int main(void)
{
    static int cell;
    pthread_t thread = start(worker, NULL);
    result = &cell;
    finish(thread);
    return 0;
}
