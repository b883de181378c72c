// A second thread unlocks what the first one holds: from then on the first is unprotected without having
// unlocked anything itself.
#include "steps.h"
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *robbed(void *unused)
{
    pthread_mutex_lock(&guard);
    step_done(1);
    step_wait(2);
    counter++; // race: counter
    return unused;
}

static void *robber(void *unused)
{
    step_wait(1);
    pthread_mutex_unlock(&guard); // not ours
    pthread_mutex_lock(&guard);
    counter++; // race: counter
    step_done(2);
    pthread_mutex_unlock(&guard);
    return unused;
}

int main(void)
{
    both(robbed, robber);
    printf("%d\n", counter);
    return 0;
}
