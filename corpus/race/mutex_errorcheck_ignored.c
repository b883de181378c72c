// An error-checking lock refuses to be unlocked by a thread that does not hold it; the program does not look,
// and believes afterwards that a lock it failed to take twice is still held once more than it is.
#include "start.h"

pthread_mutex_t guard;
int counter;

static void *count(void *unused)
{
    pthread_mutex_lock(&guard);
    pthread_mutex_lock(&guard); // EDEADLK: this one does not count
    pthread_mutex_unlock(&guard);
    counter++; // race: counter
    pthread_mutex_unlock(&guard); // EPERM
    return unused;
}

int main(void)
{
    pthread_mutexattr_t checked;
    pthread_mutexattr_init(&checked);
    pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&guard, &checked);
    both(count, count);
    printf("%d\n", counter);
    return 0;
}
