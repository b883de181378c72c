// The allocator of the C library and the kernel's: what comes into being, what ceases to be.
//
// watch: memory
// options: --place *
// build: gcc -O1 -g -fno-builtin
// build: gcc -O1 -g -fno-builtin -static

#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

// A system call made here, so that it is at a line of this file.
#define map(number, address, first, second, third)                                           \
    ({                                                                                       \
        register long fourth __asm__("r10") = (third);                                       \
        register long fd __asm__("r8") = -1;                                                 \
        register long offset __asm__("r9") = 0;                                              \
        long result;                                                                         \
        __asm__ volatile("syscall"                                                           \
                         : "=a"(result)                                                      \
                         : "a"((long)(number)), "D"(address), "S"((long)(first)),            \
                           "d"((long)(second)), "r"(fourth), "r"(fd), "r"(offset)            \
                         : "rcx", "r11", "memory");                                          \
        (void *)result;                                                                      \
    })

static void blocks(void)
{
    char *p = malloc(24);               // expect: allocate 24
    p[8] = 1;                           // expect: write 1 block(24)+8
    free(p);                            // expect: free block(24)
    p = calloc(3, 5);                   // expect: allocate 15
    free(p);                            // expect: free block(15)
    free(NULL);
    p = malloc(0);                      // expect: allocate 0
    free(p);                            // expect: free block(0)
    if (malloc((size_t)-1 >> 1))        // Fails: nothing comes into being.
        abort();
}

static void moving(void)
{
    char *p = realloc(NULL, 10);        // expect: allocate 10
    p = realloc(p, 100);                // expect: free block(10); allocate 100
    p[99] = 1;                          // expect: write 1 block(100)+99
    p = reallocarray(p, 30, 10);        // expect: free block(100); allocate 300
    p[299] = 1;                         // expect: write 1 block(300)+299
    // Refused: the old block lives on, as large as it was, which the probe does not know.
    if (realloc(p, (size_t)-1 >> 1))    // expect: free block(300); allocate 0
        abort();
    p[0] = 1;                           // expect: write 1 block(0)
    p = realloc(p, 0);                  // expect: free block(0)
}

static void aligned(void)
{
    void *p = aligned_alloc(64, 128);   // expect: allocate 128
    free(p);                            // expect: free block(128)
    p = memalign(32, 96);               // expect: allocate 96
    free(p);                            // expect: free block(96)
    p = valloc(72);                     // expect: allocate 72
    free(p);                            // expect: free block(72)
    posix_memalign(&p, 64, 50);         // expect: allocate 50
    free(p);                            // expect: free block(50)
}

static void mappings(void)
{
    int kind = MAP_PRIVATE | MAP_ANONYMOUS;
    char *p = map(SYS_mmap, 0L, 8192, PROT_READ | PROT_WRITE, kind);  // expect: allocate 8192
    p[5000] = 1;                                            // expect: write 1 block(8192)+5000
    p = map(SYS_mremap, p, 8192, 65536, MREMAP_MAYMOVE);    // expect: free 8192 block(8192); allocate 65536
    p[5001] = 1;                                            // expect: write 1 block(65536)+5001
    map(SYS_munmap, p, 65536, 0, 0);                        // expect: free 65536 block(65536)
    map(SYS_mmap, 0L, 0, PROT_READ, kind);                // Refused.
}

int main(void)
{
    blocks();
    moving();
    aligned();
    mappings();
    return 0;
}
