// An order between threads that Raddle's analysers cannot see: a byte through a pipe. `done(n)` lets
// `await(n)` pass. Deterministic, and never by sleeping.

#pragma once
#include <stdlib.h>
#include <unistd.h>

static int steps[16][2];

__attribute__((constructor)) static void make_steps(void)
{
    for (int i = 0; i < 16; i++)
        if (pipe(steps[i]))
            abort();
}

__attribute__((unused)) static void done(int step)
{
    if (write(steps[step][1], "", 1) != 1)
        abort();
}

__attribute__((unused)) static void await(int step)
{
    char byte;
    if (read(steps[step][0], &byte, 1) != 1)
        abort();
}
