// Lazy initialisation with no protection at all: two tables may be made, one is lost.
#include "steps.h"
#include "start.h"

int *table;

static int *get(void)
{
    if (!table) { // race: table
        int *made = malloc(4 * sizeof *made); // block: heap made
        made[0] = 1; // race: heap made
        table = made; // race: table
    }
    return table; // race: table
}

static void *first(void *unused)
{
    get();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    return get()[0] == 1 ? unused : NULL; // race: heap made
}

int main(void)
{
    both(first, second);
    printf("%d\n", table[0]);
    return 0;
}
