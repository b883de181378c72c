// exit: 0
/* Memory in the middle of the address space, where most programs have none (V8 and others have theirs there), used by
 * code that has used ordinary memory before, from two threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SIZE = 1 << 20 };

static void *use(void *memory)
{
    unsigned char *bytes = memory;

    for (int i = 0; i < SIZE; i += 64)
        bytes[i] = (unsigned char)(i / 64);
    memmove(bytes + 1, bytes, 1000);
    __atomic_fetch_add((int *)(bytes + 4096), 1, __ATOMIC_SEQ_CST);
    ((uint64_t *)bytes)[1000]++;
    return NULL;
}

int main(void)
{
    static const uintptr_t places[] = {0x200000000000, 0x719dcaa0000, 0x38cee5500000, 0x550000000000, 0x600000000000};
    void *ordinary = malloc(SIZE);

    use(ordinary);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        unsigned char *far = mmap((void *)places[i], SIZE, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (far == MAP_FAILED)
            return 1;
        pthread_t thread;
        pthread_create(&thread, NULL, use, far);
        pthread_join(thread, NULL);
        use(far);
        printf("%d %d %d\n", far[65], far[4096], far[8000]);
        if (i % 2)
            munmap(far, SIZE);
    }
    free(ordinary);
    return 0;
}
