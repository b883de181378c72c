// strlen reads in big steps, past the end of the string, into bytes that another thread writes: by its contract it reads
// the string only.
// clean
#include "start.h"
#include <string.h>

__attribute__((aligned(32))) char record[32] = "short";

static void *measure(void *result)
{
    *(size_t *)result = strlen(record) + (strchr(record, 'r') - record) + (size_t)strcmp(record, "short");
    return NULL;
}

static void *neighbour(void *unused)
{
    for (int i = 6; i < 32; i++)
        record[i] = 1;
    return unused;
}

int main(void)
{
    size_t length;
    pthread_t first = start(measure, &length);
    pthread_t second = start(neighbour, NULL);
    finish(first);
    finish(second);
    printf("%zu\n", length);
    return 0;
}
