// A transfer locks its source, then its destination; two go in opposite directions.
// fails: deadlock
#include "stagger.h"
#include "start.h"

static struct account {
    pthread_mutex_t lock;
    long balance;
} accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 500}, {PTHREAD_MUTEX_INITIALIZER, 500}};

static void transfer(struct account *from, struct account *to, long amount)
{
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *forth(void *unused)
{
    transfer(&accounts[0], &accounts[1], 10);
    return unused;
}

static void *back(void *unused)
{
    work(LATE);
    transfer(&accounts[1], &accounts[0], 10);
    return unused;
}

int main(void)
{
    both(forth, back);
    return 0;
}
