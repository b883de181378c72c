// A sequence lock whose data is plain. The reader notices a torn read and repeats it, so nothing bad comes of it on this
// machine; by the language it is a race on the data all the same, and every detector says so.
#include "steps.h"
#include "start.h"
#include <stdatomic.h>

atomic_uint sequence;
int first_half, second_half;

static void *writer(void *unused)
{
    step_wait(1);
    atomic_fetch_add(&sequence, 1);
    first_half = 1; // race: first_half
    second_half = 1; // race: second_half
    atomic_fetch_add(&sequence, 1);
    return unused;
}

static void *reader(void *result)
{
    unsigned before;
    int a, b;

    do {
        before = atomic_load(&sequence);
        a = first_half; // race: first_half
        b = second_half; // race: second_half
        step_done(1);
    } while (before % 2 || before != atomic_load(&sequence));
    *(int *)result = a == b;
    return NULL;
}

int main(void)
{
    int consistent = 0;
    pthread_t first = start(writer, NULL);
    pthread_t second = start(reader, &consistent);
    finish(first);
    finish(second);
    printf("%d\n", consistent);
    return 0;
}
