// Races that the author knows of and accepts: a sized benign race, and a stretch in which accesses are ignored.
// clean
#include "start.h"

__attribute__((noinline)) void AnnotateBenignRaceSized(const char *file, int line, const volatile void *address,
                                                       size_t size, const char *description)
{
    __asm__ volatile("" : : "r"(file), "r"(line), "r"(address), "r"(size), "r"(description) : "memory");
}

__attribute__((noinline)) void AnnotateIgnoreWritesBegin(const char *file, int line)
{
    __asm__ volatile("" : : "r"(file), "r"(line) : "memory");
}

__attribute__((noinline)) void AnnotateIgnoreWritesEnd(const char *file, int line)
{
    __asm__ volatile("" : : "r"(file), "r"(line) : "memory");
}

int statistics, hits;

static void *worker(void *unused)
{
    statistics++;
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    hits = 1;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    return unused;
}

int main(void)
{
    AnnotateBenignRaceSized(__FILE__, __LINE__, &statistics, sizeof statistics, "a statistic");
    both(worker, worker);
    printf("%d\n", hits);
    return 0;
}
