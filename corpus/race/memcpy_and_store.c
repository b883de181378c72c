// One thread copies a buffer with memcpy while the other writes into it. Both ThreadSanitizers miss this where the copy is not
// instrumented.
#include "start.h"
#include <string.h>

char source[256];
char copy[256];
volatile size_t length = 256;

static void *copier(void *unused)
{
    memcpy(copy, source, length); // race: source
    return unused;
}

static void *writer(void *unused)
{
    source[200] = 1; // race: source
    return unused;
}

int main(void)
{
    both(copier, writer);
    printf("%d\n", copy[0]);
    return 0;
}
