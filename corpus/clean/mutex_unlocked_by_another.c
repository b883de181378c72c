// The lock is used as a gate: main holds it, a thread is let in when another thread opens it. glibc's normal
// mutexes allow this. What the opener wrote before is ordered before what the thread let in does: by the
// lock alone, so a predicted finding is what the weak order must say; observed would be wrong.
// clean
#include "steps.h"
#include "start.h"

pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
int message;

static void *opener(void *unused)
{
    message = 1; // suspected: message, predicted
    pthread_mutex_unlock(&gate);
    return unused;
}

static void *visitor(void *unused)
{
    pthread_mutex_lock(&gate);
    printf("%d\n", message); // suspected: message, predicted
    pthread_mutex_unlock(&gate);
    return unused;
}

int main(void)
{
    pthread_mutex_lock(&gate);
    both(visitor, opener);
    return 0;
}
