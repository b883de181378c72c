// Puts threads in an order that no detector knows of, so that a program shows one chosen interleaving
// in every run.
//
// `step_done(n)` says that step n is over, `step_wait(n)` waits for it. What passes between the threads is
// the soft limit on the size of files (RLIMIT_FSIZE, far above anything written here), which is asked for
// again every millisecond: two system calls that are nobody's synchronisation. The program must be read
// as if these calls were not there: they choose among the interleavings that it has without them, and the
// verdict is about all of these.
#pragma once
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define STEP_BASE ((rlim_t)1 << 40)

static inline void step_done(unsigned step)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
    limit.rlim_cur = STEP_BASE + step;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        abort();
}

static inline void step_wait(unsigned step)
{
    struct timespec moment = {0, 1000000};
    struct rlimit limit;

    for (;;) {
        if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
            abort();
        if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur >= STEP_BASE + step)
            return;
        nanosleep(&moment, NULL);
    }
}
