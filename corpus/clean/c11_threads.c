// The threads of C11: mutexes, condition variables, call_once, thread-specific storage, join.
// clean
#include <stdio.h>
#include <stdlib.h>
#include <threads.h>

mtx_t lock;
cnd_t changed;
once_flag once = ONCE_FLAG_INIT;
int ready;
int message;
int prepared;
int counter;

static void prepare(void)
{
    prepared = 1;
}

static int producer(void *unused)
{
    call_once(&once, prepare);
    message = 41 + prepared;
    mtx_lock(&lock);
    counter++;
    ready = 1;
    cnd_signal(&changed);
    mtx_unlock(&lock);
    return unused != NULL;
}

static int consumer(void *unused)
{
    call_once(&once, prepare);
    mtx_lock(&lock);
    counter++;
    while (!ready)
        cnd_wait(&changed, &lock);
    mtx_unlock(&lock);
    message += prepared;
    return unused != NULL;
}

int main(void)
{
    thrd_t first, second;

    if (mtx_init(&lock, mtx_plain) != thrd_success || cnd_init(&changed) != thrd_success)
        abort();
    if (thrd_create(&first, producer, NULL) != thrd_success ||
        thrd_create(&second, consumer, NULL) != thrd_success)
        abort();
    thrd_join(first, NULL);
    thrd_join(second, NULL);
    printf("%d %d\n", message, counter);
    return 0;
}
