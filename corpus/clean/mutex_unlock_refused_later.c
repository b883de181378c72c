// An error-checking lock refuses to be unlocked by a thread that does not hold it, at a call that went well many
// times before: its holder still holds it.
// clean
#include "steps.h"
#include "start.h"
#include <errno.h>

pthread_mutex_t guard;
int counter;

static int leave(void)
{
    return pthread_mutex_unlock(&guard);
}

static void *holder(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&guard);
    step_done(2);
    step_wait(3);
    counter++;
    leave();
    return unused;
}

static void *meddler(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&guard);
        leave();
    }
    step_done(1);
    step_wait(2);
    if (leave() != EPERM)
        abort();
    step_done(3);
    pthread_mutex_lock(&guard);
    counter++;
    leave();
    return unused;
}

int main(void)
{
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&guard, &checked);
    both(meddler, holder);
    printf("%d\n", counter);
    return 0;
}
