// Valgrind's client requests for helgrind, spelled out: the rotations that do nothing, and the request's block in rax. They
// order the two threads as helgrind's macros ANNOTATE_HAPPENS_BEFORE and ANNOTATE_HAPPENS_AFTER do.
// clean
#include "steps.h"
#include "start.h"

enum {
    HELGRIND = ('H' << 24) | ('G' << 16),
    SEND = HELGRIND + 256 + 33, // VG_USERREQ__HG_USERSO_SEND_PRE
    RECEIVE = HELGRIND + 256 + 34, // VG_USERREQ__HG_USERSO_RECV_POST
};

static void request(unsigned long what, const volatile void *address)
{
    volatile unsigned long block[6] = {what, (unsigned long)address};
    unsigned long result = 0;

    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "=d"(result)
                     : "a"(&block[0]), "0"(result)
                     : "cc", "memory");
}

int message;

static void *producer(void *unused)
{
    message = 42;
    request(SEND, &message);
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    step_wait(1);
    request(RECEIVE, &message);
    message++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", message);
    return 0;
}
