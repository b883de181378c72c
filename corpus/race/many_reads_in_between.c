// The racing read is followed by thousands of other accesses of the same thread and of others, before the write comes: the
// memory of a detector must reach back that far.
#include "steps.h"
#include "start.h"

volatile int shared;
int others[4096];

static void *early_reader(void *unused)
{
    int seen = shared; // race: shared
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 4096; i++)
            seen += others[i];
    step_done(1);
    return seen == 0 ? unused : NULL;
}

static void *bystander(void *unused)
{
    int seen = 0;

    for (int i = 0; i < 4096; i++)
        seen += others[i];
    return seen == 0 ? unused : NULL;
}

static void *late_writer(void *unused)
{
    step_wait(1);
    shared = 1; // race: shared
    return unused;
}

int main(void)
{
    pthread_t third = start(bystander, NULL);
    both(early_reader, late_writer);
    finish(third);
    printf("%d\n", shared);
    return 0;
}
