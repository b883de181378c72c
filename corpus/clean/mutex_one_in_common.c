// Three threads hold different pairs out of three locks; any two pairs have a lock in common, though no
// lock is common to all three. A lock set that is intersected over all accesses becomes empty here; pairs do not.
// clean
#include "start.h"

pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t b = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER;
int counter;

static void count_under(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    counter++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void *under_ab(void *unused) { count_under(&a, &b); return unused; }
static void *under_bc(void *unused) { count_under(&b, &c); return unused; }
static void *under_ac(void *unused) { count_under(&a, &c); return unused; }

int main(void)
{
    pthread_t first = start(under_ab, NULL);
    pthread_t second = start(under_bc, NULL);
    pthread_t third = start(under_ac, NULL);
    finish(first);
    finish(second);
    finish(third);
    printf("%d\n", counter);
    return 0;
}
