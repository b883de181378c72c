// Results are cleared in order, by whoever finds the next ones done; a section that clears very many has read long ago that the first of
// them was done. Correct: it read so under the lock, in the same section.
// clean
#include "steps.h"
#include "start.h"

enum { RESULTS = 200 };

struct result {
    long value, sum, rest[6];
    int done;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct result results[RESULTS];
int cleared;

static void hand_in(struct result *mine)
{
    pthread_mutex_lock(&lock);
    mine->done = 1;
    for (; cleared < RESULTS && results[cleared].done; cleared++) {
        struct result *next = &results[cleared];
        next->value = next->sum = 0;
        for (int i = 0; i < 6; i++)
            next->rest[i] = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void work(struct result *mine)
{
    mine->value = 7;
    mine->sum = mine->value * 2;
    for (int i = 0; i < 6; i++)
        mine->rest[i] = mine->sum + i;
    hand_in(mine);
}

static void *the_second(void *unused)
{
    work(&results[1]);
    step_done(1);
    return unused;
}

static void *the_others(void *unused)
{
    step_wait(1);
    for (int i = 2; i < RESULTS; i++)
        work(&results[i]);
    step_done(2);
    return unused;
}

static void *the_first(void *unused)
{
    step_wait(2);
    work(&results[0]);
    return unused;
}

int main(void)
{
    pthread_t second = start(the_second, NULL);

    both(the_others, the_first);
    finish(second);
    printf("%d\n", cleared);
    return 0;
}
