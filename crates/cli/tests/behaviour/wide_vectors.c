// exit: 0
// Whole vector registers and a mask hold their values across accesses that are handed to the probe one by one, whether their
// upper halves are zero, or some, or one bit of one of them is not.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { REGISTERS = 16, BYTES = 64, STEP = 4160, STEPS = 60, ROUNDS = 40 };
#define EACH ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
__attribute__((target("avx512f,avx512bw"), noinline)) static uint64_t hold(const void *in, void *out, char *memory,
                                                                          uint64_t mask) {
    long steps = STEPS;
    uint64_t kept;
    __asm__ volatile(EACH "vmovups \\r*64(%[in]), %%zmm\\r\n .endr\n"
                     "kmovq %[mask], %%k1\n"
                     "1: fldt (%[memory])\n fstp %%st(0)\n"
                     "movb $1, (%[memory])\n lock incl 16(%[memory])\n movw $3, 61(%[memory])\n"
                     "add %[step], %[memory]\n dec %[steps]\n jnz 1b\n"
                     "kmovq %%k1, %[kept]\n" EACH "vmovups %%zmm\\r, \\r*64(%[out])\n .endr\n"
                     "vzeroupper\n"
                     : [kept] "=&r"(kept), [memory] "+r"(memory), [steps] "+r"(steps)
                     : [in] "r"(in), [out] "r"(out), [mask] "r"(mask), [step] "i"(STEP)
                     : "memory", "cc", "k1", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                       "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    return kept;
}
static unsigned char value(int kind, int number, int byte, unsigned *state) {
    *state = *state * 1103515245 + 12345;
    unsigned char any = *state >> 16;
    if (byte < 16 || kind == 1) return any;
    if (kind == 2) return number == REGISTERS - 1 && byte == BYTES - 1;
    return kind == 3 && byte < 32 ? any : 0;
}
static void *work(void *number) {
    unsigned char in[REGISTERS][BYTES], out[REGISTERS][BYTES];
    unsigned state = 1 + (unsigned)(long)number;
    char *memory = calloc(STEPS + 1, STEP);
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < REGISTERS; i++)
            for (int j = 0; j < BYTES; j++) in[i][j] = value(round % 4, i, j, &state);
        uint64_t mask = 0x0123456789abcdef * (uint64_t)round;
        wrong += hold(in, out, memory + round, mask) != mask || memcmp(in, out, sizeof in) != 0;
    }
    free(memory);
    return (void *)wrong;
}
int main(void) {
    pthread_t threads[2];
    long wrong = 0;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
        for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
        for (int i = 0; i < 2; i++) {
            void *result;
            pthread_join(threads[i], &result);
            wrong += (long)result;
        }
    }
    printf("%ld wrong\n", wrong);
    return wrong != 0;
}
