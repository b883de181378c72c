// pthread_setspecific: each thread its own value, and a destructor that frees it.
// clean
#include "start.h"

pthread_key_t key;

static void *worker(void *unused)
{
    int *mine = malloc(sizeof *mine);

    *mine = 1;
    pthread_setspecific(key, mine);
    ++*(int *)pthread_getspecific(key);
    return unused;
}

int main(void)
{
    pthread_key_create(&key, free);
    both(worker, worker);
    puts("done");
    return 0;
}
