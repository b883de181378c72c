// `rep stosb` fills a buffer that the other thread reads.
#include "start.h"
#include <stddef.h>

char buffer[128];

static void *filler(void *unused)
{
    void *to = buffer;
    size_t count = sizeof buffer;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(1) : "memory"); // race: buffer
    return unused;
}

static void *reader(void *result)
{
    *(int *)result = ((volatile char *)buffer)[100]; // race: buffer
    return NULL;
}

int main(void)
{
    int seen = 0;
    pthread_t first = start(filler, NULL);
    pthread_t second = start(reader, &seen);
    finish(first);
    finish(second);
    printf("%d\n", seen <= 1);
    return 0;
}
