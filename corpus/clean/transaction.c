// Transactions of gcc: what is done inside them does not collide.
// clean
// build: gcc -fgnu-tm
#include "start.h"

int balance[2] = {100, 100};

static void *move(void *unused)
{
    for (int i = 0; i < 10; i++)
        __transaction_atomic
        {
            balance[0] -= 1;
            balance[1] += 1;
        }
    return unused;
}

int main(void)
{
    both(move, move);
    printf("%d\n", balance[0] + balance[1]);
    return 0;
}
