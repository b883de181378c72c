/* Benchmark: a matrix multiply, each thread with its own rows of the product.
 *
 * Tight loops of loads that both threads share for reading: the most accesses per second a program
 * makes, so the worst case for counting or checking each of them.
 *
 * usage: matmul [size]     prints a checksum
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };

static size_t size = 1000;
static double *left, *right, *product;

static void *multiply_rows(void *number)
{
    size_t me = (size_t)number;

    for (size_t row = me * size / THREADS; row < (me + 1) * size / THREADS; row++)
        for (size_t column = 0; column < size; column++) {
            double sum = 0;
            for (size_t k = 0; k < size; k++)
                sum += left[row * size + k] * right[k * size + column];
            product[row * size + column] = sum;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        size = strtoul(argv[1], NULL, 10);
    left = malloc(size * size * sizeof *left);
    right = malloc(size * size * sizeof *right);
    product = malloc(size * size * sizeof *product);
    if (!left || !right || !product)
        return 2;
    for (size_t i = 0; i < size * size; i++) {
        left[i] = (double)(i % 17) - 8;
        right[i] = (double)(i % 23) - 11;
    }

    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, multiply_rows, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    double checksum = 0;
    for (size_t i = 0; i < size * size; i++)
        checksum += product[i] * (double)(i % 701);
    printf("%.0f\n", checksum);
    free(left);
    free(right);
    free(product);
    return 0;
}
