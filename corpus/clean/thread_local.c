// The same name, a variable per thread.
// clean
#include "start.h"

__thread int counter;
int sums[2];

static void *worker(void *place)
{
    for (int i = 0; i < 10; i++)
        counter += i;
    *(int *)place = counter;
    return NULL;
}

int main(void)
{
    pthread_t first = start(worker, &sums[0]);
    pthread_t second = start(worker, &sums[1]);
    finish(first);
    finish(second);
    printf("%d\n", sums[0] + sums[1]);
    return 0;
}
