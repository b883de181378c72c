// Main has joined one of two threads and believes to be alone: the other has ended, too, but nobody has waited for it.
#include "steps.h"
#include "start.h"

int left, joined;

static void *leaves(void *unused)
{
    left = 1; // race: left
    step_done(1);
    return unused;
}

static void *is_joined(void *unused)
{
    joined = 1;
    return unused;
}

int main(void)
{
    pthread_detach(start(leaves, NULL));
    step_wait(1);
    finish(start(is_joined, NULL));
    left++; // race: left
    joined++;
    printf("%d %d\n", left, joined);
    return 0;
}
