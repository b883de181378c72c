// exit: 0
// Handlers on alternate stacks, a fast timer, locks and faults in four threads at once.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static __thread sigjmp_buf back;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;

static void tick(int signal) { ticks++; }
static void fault(int signal, siginfo_t *info, void *context) { siglongjmp(back, 1); }

static void *work(void *unused) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, 0);
    volatile char *bad = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
        if (!sigsetjmp(back, 1)) bad[0] = 1;
    }
    return 0;
}

int main(void) {
    struct sigaction on_tick = {.sa_handler = tick, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &on_tick, 0);
    struct sigaction on_fault = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &on_fault, 0);
    struct itimerval every = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &every, 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    printf("%ld\n", total);
    return total != 2000;
}
