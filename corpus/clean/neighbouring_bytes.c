// Neighbouring members, down to single bytes, and bit-fields kept apart by a zero-width one, are different locations.
// clean
#include "start.h"

struct {
    char a, b;
    short c;
    int d;
    unsigned e : 3;
    unsigned : 0;
    unsigned f : 3;
} record;

static void *first(void *unused)
{
    for (int i = 0; i < 10; i++) {
        record.a++;
        record.c++;
        record.e++;
    }
    return unused;
}

static void *second(void *unused)
{
    for (int i = 0; i < 10; i++) {
        record.b++;
        record.d++;
        record.f++;
    }
    return unused;
}

int main(void)
{
    both(first, second);
    printf("%d\n", record.a + record.b + record.c + record.d);
    return 0;
}
