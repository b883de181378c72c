// The frame whose local was given away is finished; the thread writes through the pointer into whatever uses that part of
// the stack now.
#include "steps.h"
#include "start.h"

pthread_t thread;

static void *late_writer(void *place)
{
    step_wait(1);
    for (int i = 0; i < 16; i++) // the far end: no saved register is there
        ((volatile char *)place)[i]++; // race: stack local
    step_done(2);
    return NULL;
}

__attribute__((noinline)) static void gives_away(void)
{
    volatile char local[64];

    local[7] = 0;
    thread = start(late_writer, (void *)local);
}

__attribute__((noinline)) static int uses_stack(void)
{
    volatile char local[256];
    int sum = 0;

    for (int i = 0; i < 256; i++)
        local[i] = 1; // race: stack local
    step_done(1);
    step_wait(2);
    for (int i = 0; i < 256; i++)
        sum += local[i]; // race: stack local
    return sum;
}

int main(void)
{
    gives_away();
    int sum = uses_stack();
    finish(thread);
    printf("%d\n", sum >= 256);
    return 0;
}
