// pthread_once: the body is the program's own code, so its accesses are events although it runs
// inside a hooked function; the second caller only passes.
//
// watch: sync memory
// build: gcc -O2 -g -pthread

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int made, seen;

// expect: once-begin once
static void body(void)
{
    *(volatile int *)&made = 42;                // expect: write 4 made
}
// expect: once-end once done; once-passed once; read 4 seen; read 4 made; write 4 seen
// expect T2: once-passed once

static void *other(void *argument)
{
    pthread_once(&once, body);
    *(volatile int *)&seen += made;             // expect T2: read 4 seen; read 4 made; write 4 seen
    return argument;
}

int main(void)
{
    pthread_t thread;
    other(NULL);
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    return seen != 84;                          // expect: read 4 seen
}
