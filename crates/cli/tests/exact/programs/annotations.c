// What a program says to race detectors: each annotation is an event, and what the functions do inside
// is none. Their bodies differ, or the compiler would make one function of them.
//
// watch: sync memory
// also: release acquire
// build: gcc -O1 -g
// build: gcc -O1 -g -static

#define SAYS(name, ...) __attribute__((noinline, noipa)) void name(const char *file, int line, __VA_ARGS__) { __asm__("# " #name); }

typedef const volatile void *object;
SAYS(AnnotateHappensBefore, object o)
SAYS(AnnotateHappensAfter, object o)
SAYS(AnnotatePCQPut, object o)
SAYS(AnnotatePCQGet, object o)
SAYS(AnnotateMutexIsUsedAsCondVar, object o)
SAYS(AnnotateRWLockCreate, object o)
SAYS(AnnotateRWLockAcquired, object o, long exclusive)
SAYS(AnnotateRWLockReleased, object o, long exclusive)
SAYS(AnnotateNewMemory, object o, long size)
SAYS(AnnotateBenignRaceSized, object o, long size, const char *why)
SAYS(AnnotateIgnoreReadsBegin, ...)
SAYS(AnnotateIgnoreReadsEnd, ...)
SAYS(AnnotateEnableRaceDetection, int on)
__attribute__((noinline, noipa)) void __tsan_release(void *o) { __asm__("# release"); }
__attribute__((noinline, noipa)) void __tsan_mutex_post_lock(void *o, unsigned flags, int n) { __asm__("# lock"); }

static int thing, lock;

int main(void)
{
    AnnotateHappensBefore("", 0, &thing);               // expect: release thing
    AnnotateHappensAfter("", 0, &thing);                // expect: acquire thing
    AnnotatePCQPut("", 0, &thing);                      // expect: release queue thing
    AnnotatePCQGet("", 0, &thing);                      // expect: acquire queue thing
    __tsan_release(&thing);                             // expect: release thing
    AnnotateMutexIsUsedAsCondVar("", 0, &lock);         // expect: lock-hands-over lock
    AnnotateRWLockCreate("", 0, &lock);                 // expect: lock-created lock
    AnnotateRWLockAcquired("", 0, &lock, 1);            // expect: lock-acquired lock
    AnnotateRWLockReleased("", 0, &lock, 1);            // expect: lock-released lock
    AnnotateRWLockAcquired("", 0, &lock, 0);            // expect: lock-acquired lock shared
    AnnotateRWLockReleased("", 0, &lock, 0);            // expect: lock-released lock shared
    __tsan_mutex_post_lock(&lock, 8, 1);                // expect: lock-acquired lock shared
    __tsan_mutex_post_lock(&lock, 32, 1);
    AnnotateNewMemory("", 0, &thing, 4);                // expect: memory-renewed 4 thing
    AnnotateBenignRaceSized("", 0, &thing, 2, "");      // expect: benign-race 2 thing
    AnnotateIgnoreReadsBegin("", 0);                    // expect: ignore-begin reads
    AnnotateIgnoreReadsEnd("", 0);                      // expect: ignore-end reads
    AnnotateEnableRaceDetection("", 0, 0);              // expect: detection-switched off
    return 0;
}
