// The index moves before the value is stored: the consumer may take what is not there yet.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static volatile int ring[8], written;

static void *producer(void *unused)
{
    for (int i = 0; i < 3; i++) {
        int at = written;
        written = at + 1;
        ring[at] = 10 + i;
    }
    return unused;
}

static void *consumer(void *unused)
{
    work(LATE);
    int available = written;
    for (int i = 0; i < available; i++)
        assert(ring[i] == 10 + i);
    return unused;
}

int main(void)
{
    both(producer, consumer);
    return 0;
}
