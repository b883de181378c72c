// Double-checked locking that publishes the object before it is filled in.
// fails: crash
#include "stagger.h"
#include "start.h"

struct table {
    int *volatile cells;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *volatile table;
static int cells[16];

static struct table *get(void)
{
    if (!table) {
        pthread_mutex_lock(&lock);
        if (!table) {
            table = calloc(1, sizeof *table);
            table->cells = cells;
        }
        pthread_mutex_unlock(&lock);
    }
    return table;
}

static void *early(void *unused)
{
    get()->cells[0] = 1;
    return unused;
}

static void *late(void *unused)
{
    work(LATE);
    get()->cells[1] = 1;
    return unused;
}

int main(void)
{
    both(early, late);
    return 0;
}
