/* Benchmark: what a confirming run costs. Two threads work, on their own, and race at the end.
 *
 * usage: racing compute|io [rounds]     prints a checksum
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static int computes;
static long rounds;
static long finished;

static uint64_t compute(uint64_t seed)
{
    static _Thread_local uint32_t table[BLOCK];
    uint64_t sum = seed;

    for (long round = 0; round < rounds; round++)
        for (int i = 0; i < BLOCK; i++) {
            table[i] = table[i] * 1664525u + (uint32_t)sum;
            sum = (sum ^ table[i]) * 0x100000001b3u;
        }
    return sum;
}

/* What is written to a pipe is read again, a block at a time, and goes to a file. */
static uint64_t transfer(uint64_t seed)
{
    char block[BLOCK];
    uint64_t sum = seed;
    int ends[2];
    FILE *file = tmpfile();

    if (!file || pipe(ends))
        exit(2);
    for (long round = 0; round < rounds; round++) {
        memset(block, (int)(seed + round), sizeof block);
        if (write(ends[1], block, sizeof block) != BLOCK || read(ends[0], block, sizeof block) != BLOCK ||
            pwrite(fileno(file), block, sizeof block, round % 64 * BLOCK) != BLOCK)
            exit(2);
        sum += block[round % BLOCK];
    }
    fclose(file);
    return sum;
}

static void *work(void *seed)
{
    uint64_t sum = computes ? compute((uintptr_t)seed) : transfer((uintptr_t)seed);

    finished++; /* the race */
    return (void *)(uintptr_t)sum;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    uintptr_t sum = 0;

    computes = argc < 2 || !strcmp(argv[1], "compute");
    rounds = argc > 2 ? atol(argv[2]) : computes ? 60000 : 60000;
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 2; i++) {
        void *part;
        pthread_join(threads[i], &part);
        sum ^= (uintptr_t)part;
    }
    printf("%lx\n", (unsigned long)sum);
    return 0;
}
