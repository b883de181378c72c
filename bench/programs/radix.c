/* Benchmark: a parallel radix sort, in the manner of SPLASH-2's RADIX.
 *
 * In each pass every thread counts the digits of its stripe, a prefix sum over all threads' counts gives each its
 * places, and the keys are scattered over the whole array: writes all over, by everybody, kept apart by barriers
 * and arithmetic alone.
 *
 * usage: radix [keys] [threads]     prints a checksum; exits with 1 when the result is not sorted
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, PASSES = 32 / DIGIT_BITS };

static size_t count = 4000000;
static size_t threads = 2;
static uint32_t *keys, *sorted;
static size_t (*places)[DIGITS]; /* of each thread: how many, then where */
static pthread_barrier_t barrier;

static void count_digits(const uint32_t *from, size_t begin, size_t end, unsigned shift, size_t *mine)
{
    for (size_t digit = 0; digit < DIGITS; digit++)
        mine[digit] = 0;
    for (size_t i = begin; i < end; i++)
        mine[from[i] >> shift & (DIGITS - 1)]++;
}

/* Turns counts into first places: all smaller digits, then the same digit of the threads before. */
static void assign_places(void)
{
    size_t place = 0;

    for (size_t digit = 0; digit < DIGITS; digit++)
        for (size_t thread = 0; thread < threads; thread++) {
            size_t here = places[thread][digit];
            places[thread][digit] = place;
            place += here;
        }
}

static void *work(void *number)
{
    size_t me = (size_t)number;
    size_t begin = count * me / threads, end = count * (me + 1) / threads;
    uint32_t *from = keys, *to = sorted;

    for (unsigned pass = 0; pass < PASSES; pass++) {
        unsigned shift = pass * DIGIT_BITS;
        count_digits(from, begin, end, shift, places[me]);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            assign_places();
        pthread_barrier_wait(&barrier);
        for (size_t i = begin; i < end; i++)
            to[places[me][from[i] >> shift & (DIGITS - 1)]++] = from[i];
        pthread_barrier_wait(&barrier);
        uint32_t *swapped = from;
        from = to;
        to = swapped;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        count = strtoul(argv[1], NULL, 10);
    if (argc > 2)
        threads = strtoul(argv[2], NULL, 10);
    keys = malloc(count * sizeof *keys);
    sorted = malloc(count * sizeof *sorted);
    places = calloc(threads, sizeof *places);
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (!keys || !sorted || !places || !handles)
        return 2;
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        keys[i] = (uint32_t)(state >> 32);
    }

    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&handles[i], NULL, work, (void *)i) != 0)
            return 2;
    work((void *)0);
    for (size_t i = 1; i < threads; i++)
        pthread_join(handles[i], NULL);

    uint64_t checksum = 0; /* an even number of passes: the keys are back where they were */
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && keys[i - 1] > keys[i])
            return 1;
        checksum += keys[i] ^ i;
    }
    printf("%016lx\n", (unsigned long)checksum);
    return 0;
}
