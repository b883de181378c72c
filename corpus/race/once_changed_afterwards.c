// What pthread_once prepared is changed later by one thread, and read by the other.
#include "start.h"

pthread_once_t once = PTHREAD_ONCE_INIT;
int setting;

static void prepare(void)
{
    setting = 7;
}

static void *changer(void *unused)
{
    pthread_once(&once, prepare);
    setting = 8; // race: setting
    return unused;
}

static void *user(void *result)
{
    pthread_once(&once, prepare);
    *(int *)result = setting; // race: setting
    return NULL;
}

int main(void)
{
    int seen = 0;
    pthread_t first = start(changer, NULL);
    pthread_t second = start(user, &seen);
    finish(first);
    finish(second);
    printf("%d\n", seen >= 7);
    return 0;
}
