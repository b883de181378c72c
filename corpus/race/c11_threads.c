// The threads of C11, without the lock on one side.
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

mtx_t lock;
int counter;

static int careful(void *unused)
{
    mtx_lock(&lock);
    counter++; // race: counter
    mtx_unlock(&lock);
    return unused != NULL;
}

static int careless(void *unused)
{
    counter++; // race: counter
    return unused != NULL;
}

int main(void)
{
    thrd_t first, second;

    if (mtx_init(&lock, mtx_plain) != thrd_success)
        abort();
    if (thrd_create(&first, careful, NULL) != thrd_success ||
        thrd_create(&second, careless, NULL) != thrd_success)
        abort();
    thrd_join(first, NULL);
    thrd_join(second, NULL);
    printf("%d\n", counter);
    return 0;
}
