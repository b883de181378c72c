// Ordered by something that no detector can see, and annotated: AnnotateHappensBefore and AnnotateHappensAfter name the
// same address.
// clean
#include "steps.h"
#include "start.h"

__attribute__((noinline)) void AnnotateHappensBefore(const char *file, int line, const volatile void *address)
{
    __asm__ volatile("" : : "r"(file), "r"(line), "r"(address) : "memory");
}

__attribute__((noinline)) void AnnotateHappensAfter(const char *file, int line, const volatile void *address)
{
    __asm__ volatile("" : : "r"(file), "r"(line), "r"(address) : "memory");
}

int message;

static void *producer(void *unused)
{
    message = 42;
    AnnotateHappensBefore(__FILE__, __LINE__, &message);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    AnnotateHappensAfter(__FILE__, __LINE__, &message);
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
