// The second thread sees under the lock that the first one has come by: that hands over what the first did before, and
// nothing of what it does afterwards. Another lock, taken later, keeps the two apart in this run.
#include "steps.h"
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
int arrived;
int before, after;

static void *first(void *unused)
{
    before = 1;
    pthread_mutex_lock(&lock);
    arrived = 1;
    pthread_mutex_unlock(&lock);
    after = 1; // race: after, predicted
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    step_done(1);
    return unused;
}

static void *second(void *unused)
{
    step_wait(1);
    pthread_mutex_lock(&lock);
    int seen = arrived;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&other);
    pthread_mutex_unlock(&other);
    if (seen)
        before++;
    after++; // race: after, predicted
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d %d\n", before, after);
    return 0;
}
