/* Benchmark: a complex fast Fourier transform in six steps, in the manner of SPLASH-2's FFT.
 *
 * The signal is a square matrix; threads own stripes of rows. Transpose, transform the rows, multiply by the
 * twiddle factors, transpose, transform, transpose; a barrier after each. In the transposes every thread reads
 * what every other wrote.
 *
 * usage: fft [log2 of the points, even] [threads]     prints a checksum; exits with 1 when the energy is off
 */

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct complex {
    double re, im;
};

static size_t side;
static size_t threads = 2;
static struct complex *signal, *other, *roots; /* roots[k] = exp(-2 pi i k / points) */
static pthread_barrier_t barrier;

static struct complex times(struct complex a, struct complex b)
{
    return (struct complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

static void transpose(struct complex *to, const struct complex *from, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        for (size_t column = 0; column < side; column++)
            to[row * side + column] = from[column * side + row];
}

/* In place, by decimation in time. */
static void transform_row(struct complex *row)
{
    for (size_t i = 1, j = 0; i < side; i++) {
        size_t bit = side >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            struct complex swapped = row[i];
            row[i] = row[j];
            row[j] = swapped;
        }
    }
    for (size_t length = 2; length <= side; length *= 2)
        for (size_t start = 0; start < side; start += length)
            for (size_t k = 0; k < length / 2; k++) {
                struct complex *a = &row[start + k], *b = &row[start + k + length / 2];
                struct complex turned = times(*b, roots[k * side * (side / length)]);
                *b = (struct complex){a->re - turned.re, a->im - turned.im};
                *a = (struct complex){a->re + turned.re, a->im + turned.im};
            }
}

static void *work(void *number)
{
    size_t me = (size_t)number;
    size_t begin = side * me / threads, end = side * (me + 1) / threads;

    transpose(other, signal, begin, end);
    pthread_barrier_wait(&barrier);
    for (size_t row = begin; row < end; row++) {
        transform_row(&other[row * side]);
        for (size_t column = 0; column < side; column++)
            other[row * side + column] = times(other[row * side + column], roots[row * column]);
    }
    pthread_barrier_wait(&barrier);
    transpose(signal, other, begin, end);
    pthread_barrier_wait(&barrier);
    for (size_t row = begin; row < end; row++)
        transform_row(&signal[row * side]);
    pthread_barrier_wait(&barrier);
    transpose(other, signal, begin, end);
    return NULL;
}

static double energy(const struct complex *values)
{
    double sum = 0;

    for (size_t i = 0; i < side * side; i++)
        sum += values[i].re * values[i].re + values[i].im * values[i].im;
    return sum;
}

int main(int argc, char **argv)
{
    size_t bits = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
    if (argc > 2)
        threads = strtoul(argv[2], NULL, 10);
    side = (size_t)1 << bits / 2;
    size_t points = side * side;
    signal = malloc(points * sizeof *signal);
    other = malloc(points * sizeof *other);
    roots = malloc(points * sizeof *roots);
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (!signal || !other || !roots || !handles)
        return 2;
    unsigned long long state = 1;
    for (size_t i = 0; i < points; i++) {
        double angle = -2 * M_PI * (double)i / (double)points;
        roots[i] = (struct complex){cos(angle), sin(angle)};
        state = state * 6364136223846793005u + 1442695040888963407u;
        signal[i] = (struct complex){(double)(state >> 40) / (1 << 24) - 0.5, 0};
    }
    double before = energy(signal);

    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (size_t i = 1; i < threads; i++)
        if (pthread_create(&handles[i], NULL, work, (void *)i) != 0)
            return 2;
    work((void *)0);
    for (size_t i = 1; i < threads; i++)
        pthread_join(handles[i], NULL);

    double after = energy(other) / (double)points; /* Parseval */
    printf("%.6f %.6f\n", before, after);
    return fabs(after - before) < 1e-6 * before ? 0 : 1;
}
