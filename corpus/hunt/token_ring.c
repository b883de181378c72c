// A station passes the token on before it has left: for a moment two are inside.
// fails: assertion
#include "start.h"
#include <assert.h>
#include <stdatomic.h>
#include <unistd.h>

enum { STATIONS = 3 };
static atomic_int token, inside;

static void *station(void *argument)
{
    int me = (int)(long)argument;
    while (atomic_load(&token) != me)
        usleep(200 + 300 * me);
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_store(&token, me + 1);
    atomic_fetch_sub(&inside, 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[STATIONS];
    for (long i = 0; i < STATIONS; i++)
        threads[i] = start(station, (void *)i);
    for (int i = 0; i < STATIONS; i++)
        finish(threads[i]);
    return 0;
}
