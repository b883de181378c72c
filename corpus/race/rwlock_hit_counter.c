// A cache is read under the read lock, right, but counts its hits there too, wrong: reading is sometimes writing.
#include "start.h"

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
int cache[4] = {1, 2, 3, 4};
int hits;

static int look_up(int key)
{
    int found;

    pthread_rwlock_rdlock(&lock);
    found = cache[key];
    hits++; // race: hits
    pthread_rwlock_unlock(&lock);
    return found;
}

static void *user(void *unused)
{
    return look_up(2) == 3 ? unused : NULL;
}

int main(void)
{
    both(user, user);
    printf("%d\n", hits);
    return 0;
}
