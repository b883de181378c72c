// pthread_once: whoever comes second is ordered after the one who did it, without a lock that anybody sees.
// clean
#include "start.h"

pthread_once_t once = PTHREAD_ONCE_INIT;
int *table;

static void make_table(void)
{
    table = malloc(4 * sizeof *table);
    table[3] = 7;
}

static void *user(void *unused)
{
    pthread_once(&once, make_table);
    return table[3] == 7 ? unused : NULL;
}

int main(void)
{
    both(user, user);
    printf("%d\n", table[3]);
    return 0;
}
