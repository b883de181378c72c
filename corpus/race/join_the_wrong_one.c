// Main joins one of two threads, and reads what the other wrote.
#include "start.h"

int a, b;

static void *set_a(void *unused)
{
    a = 1;
    return unused;
}

static void *set_b(void *unused)
{
    b = 1; // race: b
    return unused;
}

int main(void)
{
    pthread_t first = start(set_a, NULL);
    pthread_t second = start(set_b, NULL);
    finish(first);
    int sum = a + b; // race: b
    finish(second);
    printf("%d\n", sum > 0);
    return 0;
}
