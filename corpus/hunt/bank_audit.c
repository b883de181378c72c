// A transfer holds one lock at a time: an audit in between misses the money.
// fails: exit 3
#include "stagger.h"
#include "start.h"

static struct account {
    pthread_mutex_t lock;
    long balance;
} accounts[2] = {{PTHREAD_MUTEX_INITIALIZER, 500}, {PTHREAD_MUTEX_INITIALIZER, 500}};
static long total;

static void change(struct account *account, long by)
{
    pthread_mutex_lock(&account->lock);
    account->balance += by;
    pthread_mutex_unlock(&account->lock);
}

static void *transfer(void *unused)
{
    change(&accounts[0], -100);
    change(&accounts[1], +100);
    return unused;
}

static void *audit(void *unused)
{
    work(LATE);
    pthread_mutex_lock(&accounts[0].lock);
    pthread_mutex_lock(&accounts[1].lock);
    total = accounts[0].balance + accounts[1].balance;
    pthread_mutex_unlock(&accounts[1].lock);
    pthread_mutex_unlock(&accounts[0].lock);
    return unused;
}

int main(void)
{
    both(transfer, audit);
    return total == 1000 ? 0 : 3;
}
