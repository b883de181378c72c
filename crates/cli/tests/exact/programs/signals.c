// Signals: delivery is an event, the handler's code is the program's, and a hooked call that a
// signal interrupts is neither ended by it nor hides what the handler does; also on an alternate
// stack, and where the handler leaves by siglongjmp.
//
// watch: process sync memory
// build: gcc -O1 -g -pthread
// build: gcc -O1 -g -pthread -static

#define _GNU_SOURCE
#include "strike.h"
#include <semaphore.h>
#include <setjmp.h>
#include <sys/mman.h>

static sem_t go, never;
static int handled, after;
static sigjmp_buf *back;

static void handler(int signal)
{
    *(volatile int *)&handled = signal;
    sem_post(&go);
}

static void jumper(int signal)
{
    *(volatile int *)&handled = signal;
    siglongjmp(*back, 1);
}

static void handle(void (*with)(int), int flags)
{
    struct sigaction action = {.sa_handler = with, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
}

int main(void)
{
    size_t size = 1 << 20;
    void *other_stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t elsewhere = {.ss_sp = other_stack, .ss_size = size};
    sem_init(&go, 0, 0);                // expect: semaphore-created go 0
    sem_init(&never, 0, 0);             // expect: semaphore-created never 0
    sigaltstack(&elsewhere, NULL);
    sigjmp_buf buffer;
    back = &buffer;                     // expect: write 8 back

    handle(handler, 0);
    raise(SIGUSR1);
                                    // expect: signal-delivered 10; write 4 handled; semaphore-post go
    sem_wait(&go);                      // expect: semaphore-acquired go
    *(volatile int *)&after = 1;        // expect: write 4 after

    // The handler posts what the interrupted call waits for.
    handle(handler, SA_RESTART);
    strike_inside(&go, SIGUSR1);
    sem_wait(&go);
                                    // expect: signal-delivered 10; write 4 handled; semaphore-post go
                                    // expect: semaphore-acquired go
    *(volatile int *)&after = 2;        // expect: write 4 after

    handle(handler, SA_RESTART | SA_ONSTACK);
    strike_inside(&go, SIGUSR1);
    sem_wait(&go);
                                    // expect: signal-delivered 10; write 4 handled; semaphore-post go
                                    // expect: semaphore-acquired go
    *(volatile int *)&after = 3;        // expect: write 4 after

    // Interrupted: the call fails.
    handle(handler, 0);
    strike_inside(&never, SIGUSR1);
    sem_wait(&never);
                                    // expect: signal-delivered 10; write 4 handled; semaphore-post go
    *(volatile int *)&after = 4;        // expect: write 4 after

    // Left: the call is over, and not successful. siglongjmp runs what glibc has registered to undo
    // a broken-off wait.
    handle(jumper, SA_NODEFER);
    strike_inside(&never, SIGUSR1);
    if (!sigsetjmp(buffer, 1))
        sem_wait(&never);
                                    // expect: signal-delivered 10; write 4 handled; read 8 back; atomic-update 8 never
    *(volatile int *)&after = 5;        // expect: write 4 after

    handle(jumper, SA_NODEFER | SA_ONSTACK);
    strike_inside(&never, SIGUSR1);
    if (!sigsetjmp(buffer, 1))
        sem_wait(&never);
                                    // expect: signal-delivered 10; write 4 handled; read 8 back; atomic-update 8 never
    *(volatile int *)&after = 6;        // expect: write 4 after
    sem_post(&go);                      // expect: semaphore-post go
    return 0;
}
