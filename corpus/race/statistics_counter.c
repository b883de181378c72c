// A statistics counter "that need not be exact": benign to look at, a race to the language, a lost update in practice.
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int balance;
long operations;

static void *teller(void *unused)
{
    for (int i = 0; i < 20; i++) {
        operations++; // race: operations
        pthread_mutex_lock(&lock);
        balance += i;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    both(teller, teller);
    printf("%d %d\n", balance, operations <= 40);
    return 0;
}
