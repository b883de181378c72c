/* The demonstration: a small bank with a lock for every account, a counter nobody locks, and one
 * function that forgot the lock.
 *
 * Two tellers move money between accounts and do it right: both accounts are locked, always in the
 * same order. Each transfer also earns the bank a fee, counted without any lock. Meanwhile the
 * manager charges every account for its upkeep and forgets the account's lock.
 *
 * Money is only ever moved, so in the end the balances, the fees and the charges must add up to what
 * there was in the beginning. With the default of a few transfers they practically always do, which
 * is why nobody noticed. `bank 1000000` loses money on most machines with two processors.
 *
 * usage: bank [transfers per teller]
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 4, TELLERS = 2, OPENING_BALANCE = 100 * 1000 * 1000 };

struct account {
    pthread_mutex_t lock;
    long balance; /* guarded by `lock`, or so it says here */
};

static struct account accounts[ACCOUNTS];
static long fees;    /* earned by transfers, by both tellers */
static long charges; /* taken by the manager alone */
static long transfers_per_teller = 4;

static void transfer(int from, int to, long amount)
{
    struct account *first = &accounts[from < to ? from : to];
    struct account *second = &accounts[from < to ? to : from];

    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    accounts[from].balance -= amount + 1; // race: accounts[].balance
    accounts[to].balance += amount;       // race: accounts[].balance
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);

    fees += 1; // race: fees
}

static void charge_upkeep(struct account *account)
{
    account->balance -= 1; // race: accounts[].balance
    charges += 1;          // clean: only the manager comes here
}

static void *teller(void *number)
{
    unsigned turn = (unsigned)(size_t)number;

    for (long i = 0; i < transfers_per_teller; i++, turn++) {
        int from = (int)(turn % ACCOUNTS);
        int to = (int)((turn + 1 + turn % (ACCOUNTS - 1)) % ACCOUNTS);
        transfer(from, to, 10);
    }
    return NULL;
}

static void *manager(void *unused)
{
    (void)unused;
    for (long i = 0; i < transfers_per_teller; i++)
        charge_upkeep(&accounts[i % ACCOUNTS]);
    return NULL;
}

static pthread_t start(void *(*body)(void *), size_t argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, (void *)argument) != 0) {
        fputs("bank: cannot start a thread\n", stderr);
        exit(2);
    }
    return thread;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        transfers_per_teller = strtol(argv[1], NULL, 10);
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = OPENING_BALANCE;
    }

    pthread_t threads[TELLERS + 1];
    for (size_t i = 0; i < TELLERS; i++)
        threads[i] = start(teller, i);
    threads[TELLERS] = start(manager, 0);
    for (int i = 0; i < TELLERS + 1; i++)
        pthread_join(threads[i], NULL);

    long total = fees + charges;
    for (int i = 0; i < ACCOUNTS; i++)
        total += accounts[i].balance; // clean: everybody has been joined
    long missing = (long)ACCOUNTS * OPENING_BALANCE - total;
    if (missing == 0)
        puts("the books balance");
    else
        printf("the books are off by %ld\n", missing);
    return 0;
}
