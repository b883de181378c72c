// Two threads, one block, no lock.
#include "start.h"

struct account {
    long id;
    long balance;
};

static void *deposit(void *account)
{
    ((struct account *)account)->balance += 10; // race: heap account
    return NULL;
}

int main(void)
{
    struct account *account = calloc(1, sizeof *account); // block: heap account
    pthread_t first = start(deposit, account);
    pthread_t second = start(deposit, account);
    finish(first);
    finish(second);
    printf("%ld\n", account->balance);
    free(account);
    return 0;
}
