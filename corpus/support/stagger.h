// Putting threads one after another without ordering them, for the programs of corpus/hunt: whoever
// works first is late, natively. `LATE` steps are some half a millisecond, ten times what starting
// a thread takes and ten thousand times the windows of these programs.
// `rest` is for windows so wide, or orders so natural, that on a busy machine half a millisecond is too
// little: a tenth of a second is more than a thread has to wait for a processor.
#pragma once
#include <unistd.h>

enum { LATE = 300000 };

static inline void rest(void)
{
    usleep(100000);
}

static inline void work(long steps)
{
    volatile long left = steps;

    while (left > 0)
        left = left - 1;
}
