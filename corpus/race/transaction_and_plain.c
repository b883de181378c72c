// One thread changes the balance in a transaction, the other without one.
// build: gcc -fgnu-tm
#include "start.h"

int balance = 100;

static void *careful(void *unused)
{
    __transaction_atomic { balance -= 1; } // race: balance
    return unused;
}

static void *careless(void *unused)
{
    balance += 1; // race: balance
    return unused;
}

int main(void)
{
    both(careful, careless);
    printf("%d\n", balance > 0);
    return 0;
}
