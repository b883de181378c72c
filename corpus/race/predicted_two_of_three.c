// Three threads; the lock orders first before second and second before third, and first and third race. The
// middle thread must not make the pair look ordered in the weak order.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int shared;
int turns;

static void turn(void)
{
    pthread_mutex_lock(&lock);
    turns++;
    pthread_mutex_unlock(&lock);
}

static void *first(void *unused)
{
    shared = 1; // race: shared, predicted
    turn();
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    turn();
    step_done(2);
    return unused;
}

static void *third(void *unused)
{
    step_wait(2);
    turn();
    shared = 3; // race: shared, predicted
    return unused;
}

int main(void)
{
    pthread_t helper = start(second, NULL);
    both(first, third);
    finish(helper);
    printf("%d %d\n", shared, turns);
    return 0;
}
