// An allocator of the program's own, made known by a hook file: its inside is its own business.
//
// watch: memory
// options: --place *
// hooks: pool.toml
// build: gcc -O2 -g
// build: gcc -O2 -g -static

#include <stddef.h>

static char blocks[4][64];
static int used;
static int numbers[8];

__attribute__((noipa)) void *pool_take(size_t size)
{
    return size <= 64 && used < 2 ? blocks[used++] : NULL;
}

__attribute__((noipa)) void pool_give(void *block)
{
    if (block)
        used--;
}

__attribute__((noipa)) void pool_copy(int *to, const int *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i];
}

int main(void)
{
    void *first = pool_take(10);        // expect: allocate 10
    void *second = pool_take(64);       // expect: allocate 64
    if (pool_take(1))
        return 1;
    pool_copy(numbers + 4, numbers, 3); // expect: read-range 12 numbers[0]; write-range 12 numbers[4]
    pool_give(second);                  // expect: free blocks[1][0]
    pool_give(first);                   // expect: free blocks[0][0]
    pool_give(NULL);
    return used;                        // expect: read 4 used
}
