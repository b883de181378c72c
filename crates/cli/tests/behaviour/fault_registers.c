// exit: 0
/* A handler that goes on behind the instruction that faulted: every register must be as it was, also the one that the
 * instruction would have set, and those that the next ones set. The JVM fetches through bad pointers this way. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

extern char behind[];
uint64_t seen[15];

static void skip(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)info;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)behind;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &action, NULL);
    for (int round = 0; round < 3; round++) {
        memset(seen, 0, sizeof seen);
        __asm__ volatile(
            "push %%rbp; push %%rbx\n"
            "mov $0x1111, %%rax; mov $0x2222, %%rbx; mov $0x3333, %%rcx; mov $0x4444, %%rdx\n"
            "mov $0x5555, %%rdi; mov $0x6666, %%rbp; mov $0x8888, %%r8; mov $0x9999, %%r9\n"
            "mov $0xaaaa, %%r10; mov $0xbbbb, %%r11; mov $0xcccc, %%r12; mov $0xdddd, %%r13\n"
            "mov $0xeeee, %%r14; mov $0xffff, %%r15; xor %%esi, %%esi\n"
            "mov (%%rsi), %%eax\n"
            "xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%r11d, %%r11d\n"
            ".globl behind\nbehind:\n"
            "mov %%rax, seen(%%rip); mov %%rbx, seen+8(%%rip); mov %%rcx, seen+16(%%rip)\n"
            "mov %%rdx, seen+24(%%rip); mov %%rsi, seen+32(%%rip); mov %%rdi, seen+40(%%rip)\n"
            "mov %%rbp, seen+48(%%rip); mov %%r8, seen+56(%%rip); mov %%r9, seen+64(%%rip)\n"
            "mov %%r10, seen+72(%%rip); mov %%r11, seen+80(%%rip); mov %%r12, seen+88(%%rip)\n"
            "mov %%r13, seen+96(%%rip); mov %%r14, seen+104(%%rip); mov %%r15, seen+112(%%rip)\n"
            "pop %%rbx; pop %%rbp\n"
            :
            :
            : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
        for (int i = 0; i < 15; i++)
            printf("%lx ", (unsigned long)seen[i]);
        printf("\n");
    }
    return 0;
}
