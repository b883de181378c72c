// The result of trylock is ignored: while another thread holds the lock, the access is unprotected.
#include "steps.h"
#include "start.h"

pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void *holder(void *unused)
{
    pthread_mutex_lock(&guard);
    counter++; // race: counter
    step_done(1);
    step_wait(2);
    pthread_mutex_unlock(&guard);
    return unused;
}

static void *impatient(void *unused)
{
    step_wait(1);
    pthread_mutex_trylock(&guard); // fails: it is held
    counter++; // race: counter
    step_done(2);
    return unused;
}

int main(void)
{
    both(holder, impatient);
    printf("%d\n", counter);
    return 0;
}
