// Two rounds of threads, and main alone before, between and behind them: the first round takes its lock, the second one does not.
#include "start.h"

int sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *careful(void *unused)
{
    pthread_mutex_lock(&lock);
    sum++;
    pthread_mutex_unlock(&lock);
    return unused;
}

static void *careless(void *unused)
{
    sum++; // race: sum
    return unused;
}

int main(void)
{
    sum = 1;
    both(careful, careful);
    sum += 2;
    both(careless, careless);
    printf("%d\n", sum);
    return 0;
}
