// Checked in one critical section, taken in the next: both withdrawals find enough.
// fails: assertion
#include "stagger.h"
#include "start.h"
#include <assert.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static int has(int amount)
{
    pthread_mutex_lock(&lock);
    int enough = balance >= amount;
    pthread_mutex_unlock(&lock);
    return enough;
}

static void take(int amount)
{
    pthread_mutex_lock(&lock);
    balance -= amount;
    pthread_mutex_unlock(&lock);
}

static void *withdraw(void *late)
{
    if (late)
        work(LATE);
    if (has(80))
        take(80);
    return NULL;
}

int main(void)
{
    pthread_t one = start(withdraw, NULL);
    pthread_t other = start(withdraw, &lock);
    finish(one);
    finish(other);
    assert(balance >= 0);
    return 0;
}
