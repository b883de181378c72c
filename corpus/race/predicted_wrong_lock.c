// Two different locks around the accesses, and a third, common one taken in between that orders them by
// accident in this run.
#include "steps.h"
#include "start.h"

pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t yours = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t statistics = PTHREAD_MUTEX_INITIALIZER;
int shared;
int passed;

static void *first(void *unused)
{
    pthread_mutex_lock(&mine);
    shared = 1; // race: shared, predicted
    pthread_mutex_unlock(&mine);
    pthread_mutex_lock(&statistics);
    passed++;
    pthread_mutex_unlock(&statistics);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&statistics);
    passed++;
    pthread_mutex_unlock(&statistics);
    pthread_mutex_lock(&yours);
    shared = 2; // race: shared, predicted
    pthread_mutex_unlock(&yours);
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d %d\n", shared, passed);
    return 0;
}
