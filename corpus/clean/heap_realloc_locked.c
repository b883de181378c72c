// The table grows under the lock that its readers take.
// clean
#include "start.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int *table;
int used, capacity;

static void *append(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&lock);
        if (used == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            table = realloc(table, capacity * sizeof *table);
        }
        table[used++] = i;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    both(append, append);
    printf("%d\n", used);
    free(table);
    return 0;
}
