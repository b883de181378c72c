// Two unaligned accesses that end and begin next to each other, across cells of eight.
// clean
#include "start.h"

struct __attribute__((packed)) {
    char skipped[3];
    int first;
    long second;
    char last;
} record;

static void *one(void *unused)
{
    for (int i = 0; i < 10; i++) {
        record.first++;
        record.last++;
    }
    return unused;
}

static void *other(void *unused)
{
    for (int i = 0; i < 10; i++)
        record.second++;
    return unused;
}

int main(void)
{
    both(one, other);
    printf("%d %ld %d\n", record.first, record.second, record.last);
    return 0;
}
