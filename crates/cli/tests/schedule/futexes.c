// Every operation of the futex call, by hand: what it returns is the same whoever answers it.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
struct futex_waitv {
    uint64_t val;
    uint64_t uaddr;
    uint32_t flags;
    uint32_t reserved;
};
#endif
enum { WORD = 2, EVERYBODY = 1 << 30 };

static uint32_t a, b;
static _Atomic int ready;

static long futex(uint32_t *at, int what, uint32_t value, const void *time, uint32_t *other, uint32_t last)
{
    long result = syscall(SYS_futex, at, what, value, time, other, last);

    return result < 0 ? -errno : result;
}

static void say(const char *what, long result)
{
    printf("%s: %ld\n", what, result);
}

static struct timespec soon(int clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    now.tv_sec += 1;
    return now;
}

struct wait {
    uint32_t *at;
    int what;
    uint32_t bits;
    long result;
};

static void *waiter(void *argument)
{
    struct wait *wait = argument;

    ready++;
    wait->result = futex(wait->at, wait->what, 0, NULL, NULL, wait->bits);
    return NULL;
}

// Waits on the word in a thread of its own; when this returns, it does wait.
static pthread_t waits(struct wait *wait)
{
    pthread_t thread;
    int before = ready;
    const struct timespec while_ = {.tv_nsec = 200000000};

    pthread_create(&thread, NULL, waiter, wait);
    while (ready == before)
        usleep(1000);
    nanosleep(&while_, NULL);
    return thread;
}

static void plain(void)
{
    const struct timespec short_ = {.tv_nsec = 1000000};
    struct timespec later = soon(CLOCK_MONOTONIC), real = soon(CLOCK_REALTIME);
    struct wait one = {.at = &a, .what = FUTEX_WAIT_PRIVATE};
    pthread_t thread;

    say("wait, another value", futex(&a, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0));
    say("wait, not aligned", futex((uint32_t *)((char *)&a + 1), FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
    say("wait, for a while", futex(&a, FUTEX_WAIT_PRIVATE, 0, &short_, NULL, 0));
    say("wait, until then", futex(&a, FUTEX_WAIT_BITSET_PRIVATE, 0, &later, NULL, 1));
    say("wait, until then, real", futex(&a, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, &real, NULL, 1));
    say("wait, no bits", futex(&a, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 0));
    say("wake, nobody", futex(&a, FUTEX_WAKE_PRIVATE, EVERYBODY, NULL, NULL, 0));
    thread = waits(&one);
    say("wake", futex(&a, FUTEX_WAKE_PRIVATE, EVERYBODY, NULL, NULL, 0));
    pthread_join(thread, NULL);
    say("was woken", one.result);
}

static void bits(void)
{
    struct wait one = {.at = &a, .what = FUTEX_WAIT_BITSET_PRIVATE, .bits = 6};
    pthread_t thread = waits(&one);

    say("wake other bits", futex(&a, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 9));
    say("wake its bits", futex(&a, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 4));
    pthread_join(thread, NULL);
}

static void requeue(void)
{
    struct wait wait[3];
    pthread_t thread[3];

    for (int i = 0; i < 3; i++) {
        wait[i] = (struct wait){.at = &a, .what = FUTEX_WAIT_PRIVATE};
        thread[i] = waits(&wait[i]);
    }
    say("requeue, another value", futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &b, 5));
    say("requeue", futex(&a, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, &b, 0));
    say("wake there", futex(&b, FUTEX_WAKE_PRIVATE, EVERYBODY, NULL, NULL, 0));
    say("requeue the rest", futex(&a, FUTEX_REQUEUE_PRIVATE, 0, (void *)5, &b, 0));
    say("wake here", futex(&a, FUTEX_WAKE_PRIVATE, EVERYBODY, NULL, NULL, 0));
    say("wake there", futex(&b, FUTEX_WAKE_PRIVATE, EVERYBODY, NULL, NULL, 0));
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
}

static void operation(void)
{
    struct wait here = {.at = &a, .what = FUTEX_WAIT_PRIVATE}, there = {.at = &b, .what = FUTEX_WAIT_PRIVATE};
    pthread_t first = waits(&here), second = waits(&there);

    say("add, and wake if it was 7",
        futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 7)));
    say("is", b);
    say("set a bit, and wake if it was less than 7",
        futex(&a, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &b,
              FUTEX_OP((FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT), 4, FUTEX_OP_CMP_LT, 7)));
    say("is", b);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    b = 0;
}

static void *several(void *unused)
{
    struct futex_waitv list[2] = {{.uaddr = (uintptr_t)&a, .flags = WORD | FUTEX_PRIVATE_FLAG},
                                  {.uaddr = (uintptr_t)&b, .flags = WORD | FUTEX_PRIVATE_FLAG}};
    long result;

    ready++;
    result = syscall(SYS_futex_waitv, list, 2, 0, NULL, 0);
    return (void *)(result < 0 ? -errno : result + 0 * (long)unused);
}

static void many(void)
{
    struct futex_waitv list[1] = {{.uaddr = (uintptr_t)&a, .flags = WORD | FUTEX_PRIVATE_FLAG}};
    struct timespec later = soon(CLOCK_MONOTONIC);
    const struct timespec while_ = {.tv_nsec = 200000000};
    pthread_t thread;
    void *which;
    int before = ready;

    say("several, until then", syscall(SYS_futex_waitv, list, 1, 0, &later, CLOCK_MONOTONIC) < 0 ? -errno : 0);
    list[0].val = 1;
    say("several, another value", syscall(SYS_futex_waitv, list, 1, 0, NULL, 0) < 0 ? -errno : 0);
    say("several, none", syscall(SYS_futex_waitv, list, 0, 0, NULL, 0) < 0 ? -errno : 0);
    pthread_create(&thread, NULL, several, NULL);
    while (ready == before)
        usleep(1000);
    nanosleep(&while_, NULL);
    say("wake one of several", futex(&b, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    pthread_join(thread, &which);
    say("which", (long)which);
}

static uint32_t inherited;
static atomic_int given_away; /* who has given it away has said so */

static void *inherits(void *unused)
{
    long got;

    ready++;
    got = futex(&inherited, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    while (!given_away)
        usleep(1000);
    say("lock of another", got);
    say("is its own", (inherited & FUTEX_TID_MASK) == (uint32_t)gettid());
    say("unlock", futex(&inherited, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    return unused;
}

static void inheriting(void)
{
    struct timespec later = soon(CLOCK_REALTIME);
    const struct timespec while_ = {.tv_nsec = 200000000};
    pthread_t thread;
    int before = ready;

    say("lock", futex(&inherited, FUTEX_LOCK_PI_PRIVATE, 0, &later, NULL, 0));
    say("is its own", (inherited & FUTEX_TID_MASK) == (uint32_t)gettid());
    say("lock again", futex(&inherited, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    say("try again", futex(&inherited, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    pthread_create(&thread, NULL, inherits, NULL);
    while (ready == before)
        usleep(1000);
    nanosleep(&while_, NULL);
    say("is wanted", (inherited & FUTEX_WAITERS) != 0);
    say("unlock", futex(&inherited, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    given_away = 1;
    pthread_join(thread, NULL);
    say("unlock what is another's", futex(&inherited, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
}

static pthread_mutex_t robust;

static void *dies(void *unused)
{
    pthread_mutex_lock(&robust);
    return unused;
}

static void orphaned(void)
{
    pthread_mutexattr_t kind;
    pthread_t thread;

    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    pthread_create(&thread, NULL, dies, NULL);
    pthread_join(thread, NULL);
    say("lock of the dead", pthread_mutex_lock(&robust) == EOWNERDEAD);
}

// One page, mapped twice: the same futex by two addresses, and woken without a change.
static void two_addresses(void)
{
    int file = memfd_create("words", 0);
    uint32_t *one, *other;
    struct wait wait = {.what = FUTEX_WAIT};
    pthread_t thread;

    if (ftruncate(file, 4096) != 0)
        abort();
    one = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    wait.at = one + 3;
    thread = waits(&wait);
    say("wake, by another word", futex(other + 4, FUTEX_WAKE, EVERYBODY, NULL, NULL, 0));
    say("wake, by its other address", futex(other + 3, FUTEX_WAKE, EVERYBODY, NULL, NULL, 0));
    pthread_join(thread, NULL);
    say("was woken", wait.result);
}

// Of two processes.
static void between_processes(void)
{
    uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        usleep(100000);
        __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
        futex(word, FUTEX_WAKE, EVERYBODY, NULL, NULL, 0);
        while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 1)
            futex(word, FUTEX_WAIT, 1, NULL, NULL, 0);
        _exit(3);
    }
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0)
        futex(word, FUTEX_WAIT, 0, NULL, NULL, 0);
    usleep(100000);
    __atomic_store_n(word, 2, __ATOMIC_SEQ_CST);
    futex(word, FUTEX_WAKE, EVERYBODY, NULL, NULL, 0);
    waitpid(child, &status, 0);
    say("the child", WEXITSTATUS(status));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    plain();
    bits();
    requeue();
    operation();
    many();
    inheriting();
    orphaned();
    two_addresses();
    between_processes();
    return 0;
}
