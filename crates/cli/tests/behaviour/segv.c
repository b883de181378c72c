// exit: 42
// flags: -D_GNU_SOURCE
// The fault's address and the registers a handler sees are the program's own.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static void fault(int signal, siginfo_t *info, void *context) {
    ucontext_t *user = context;
    long in_main = (long)user->uc_mcontext.gregs[REG_RIP];
    extern int main(void);
    printf("at %p, inside main: %d, rbx %llx\n", info->si_addr, in_main > (long)main && in_main < (long)main + 400,
           (unsigned long long)user->uc_mcontext.gregs[REG_RBX]);
    fflush(stdout);
    exit(42);
}
int main(void) {
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, 0);
    __asm__ volatile("mov $0x1234, %%rbx; movl $1, 0x10" ::: "rbx", "memory");
    return 0;
}
