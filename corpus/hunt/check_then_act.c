// A slot is found free in one call and claimed in another.
// fails: exit 4
#include "stagger.h"
#include "start.h"

enum { SLOTS = 4 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int owner[SLOTS];

static int find_free(void)
{
    int found = 0;
    pthread_mutex_lock(&lock);
    while (owner[found] != 0)
        found++;
    pthread_mutex_unlock(&lock);
    return found;
}

static void claim(int slot, int who)
{
    pthread_mutex_lock(&lock);
    owner[slot] = who;
    pthread_mutex_unlock(&lock);
}

static void *client(void *argument)
{
    long me = (long)argument;
    if (me > 1)
        rest();
    if (me > 2)
        rest();
    claim(find_free(), (int)me);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        threads[i] = start(client, (void *)(i + 1));
    for (int i = 0; i < 3; i++)
        finish(threads[i]);
    return owner[0] && owner[1] && owner[2] ? 0 : 4;
}
