// `rep movsb` with a count of zero touches nothing, and one of some bytes touches those only.
// clean
#include "start.h"
#include <stddef.h>

char buffer[128], source[128];

static void fill(char *to, size_t count)
{
    const char *from = source;

    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

static void *filler(void *unused)
{
    fill(buffer, 0);
    fill(buffer, 50);
    return unused;
}

static void *writer(void *unused)
{
    for (int i = 50; i < 128; i++)
        buffer[i] = 1;
    return unused;
}

int main(void)
{
    both(filler, writer);
    printf("%d\n", buffer[50]);
    return 0;
}
