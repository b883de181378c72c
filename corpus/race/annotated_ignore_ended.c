// The ignored stretch is over before the access.
#include "start.h"

__attribute__((noinline)) void AnnotateIgnoreWritesBegin(const char *file, int line)
{
    __asm__ volatile("" : : "r"(file), "r"(line) : "memory");
}

__attribute__((noinline)) void AnnotateIgnoreWritesEnd(const char *file, int line)
{
    __asm__ volatile("" : : "r"(file), "r"(line) : "memory");
}

int ignored, reported;

static void *worker(void *unused)
{
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    ignored = 1;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    reported = 1; // race: reported
    return unused;
}

int main(void)
{
    both(worker, worker);
    printf("%d %d\n", ignored, reported);
    return 0;
}
