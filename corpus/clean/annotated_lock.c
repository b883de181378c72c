// A lock of unknown make, announced by AnnotateRWLockCreate, Acquired and Released. It is made of system calls here, so that
// nothing but the annotations tells.
// clean
#include "start.h"
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

__attribute__((noinline)) void AnnotateRWLockCreate(const char *file, int line, const volatile void *lock)
{
    __asm__ volatile("" : : "r"(file), "r"(line), "r"(lock) : "memory");
}

__attribute__((noinline)) void AnnotateRWLockAcquired(const char *file, int line, const volatile void *lock,
                                                      long for_writing)
{
    __asm__ volatile("" : : "r"(file), "r"(line), "r"(lock), "r"(for_writing) : "memory");
}

__attribute__((noinline)) void AnnotateRWLockReleased(const char *file, int line, const volatile void *lock,
                                                      long for_writing)
{
    __asm__ volatile("" : : "r"(file), "r"(line), "r"(lock), "r"(for_writing) : "memory");
}

int lock; // only its address counts
int counter;

static void *worker(void *unused)
{
    int file = open("/proc/self/exe", O_RDONLY);

    for (int i = 0; i < 10; i++) {
        if (flock(file, LOCK_EX) != 0)
            abort();
        AnnotateRWLockAcquired(__FILE__, __LINE__, &lock, 1);
        counter++;
        AnnotateRWLockReleased(__FILE__, __LINE__, &lock, 1);
        flock(file, LOCK_UN);
    }
    close(file);
    return unused;
}

int main(void)
{
    AnnotateRWLockCreate(__FILE__, __LINE__, &lock);
    both(worker, worker);
    printf("%d\n", counter);
    return 0;
}
