// exit: 0
// flags: -D_GNU_SOURCE
// Memory asked for at addresses of one's own choice, as some allocators and runtimes do (mimalloc, Go), before there are
// threads and after. The kernel may give it elsewhere, and it must be memory.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { THREADS = 40, SIZE = 1 << 16 };

static const unsigned long wanted[] = {
    0xc000000000, 0x18000000000, 0x20000000000, 0x1c000000000, 0x50000000000, 0x100000000000, 0x7fc000000000,
};

static char *map(unsigned long at)
{
    char *memory = mmap((void *)at, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    memset(memory, 1, SIZE);
    return memory;
}

static void *use(void *number)
{
    char *memory = map(wanted[(size_t)number % (sizeof wanted / sizeof *wanted)] + 0x100000 * (size_t)number);

    return memory && memory[SIZE - 1] == 1 ? NULL : number;
}

int main(void)
{
    pthread_t threads[THREADS];

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!map(wanted[i]))
            return 1;
    puts("mapped");
    for (size_t i = 1; i < THREADS; i++)
        pthread_create(&threads[i], NULL, use, (void *)i);
    for (size_t i = 1; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        if (failed)
            return 1;
    }
    puts("used");
    return 0;
}
