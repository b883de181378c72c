/* OpenMP: a heat equation on a grid with two buffers, a reduction for the residual, and tasks for the statistics.
 *
 * usage: openmp_stencil [side] [steps]     prints the residual
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int side = argc > 1 ? atoi(argv[1]) : 48, steps = argc > 2 ? atoi(argv[2]) : 20;
    double *now = calloc((size_t)side * side, sizeof *now), *next = calloc((size_t)side * side, sizeof *next);
    double residual = 0, hottest = 0, coldest = 1;

    if (!now || !next)
        return 2;
    for (int i = 0; i < side; i++)
        now[i] = next[i] = 1;
    for (int step = 0; step < steps; step++) {
        residual = 0;
#pragma omp parallel for num_threads(2) reduction(+ : residual) schedule(dynamic, 4)
        for (int row = 1; row < side - 1; row++)
            for (int column = 1; column < side - 1; column++) {
                int at = row * side + column;
                next[at] = 0.25 * (now[at - 1] + now[at + 1] + now[at - side] + now[at + side]);
                residual += fabs(next[at] - now[at]);
            }
        double *swapped = now;
        now = next;
        next = swapped;
    }
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task shared(hottest)
        for (int i = 0; i < side * side; i++)
            hottest = fmax(hottest, now[i]);
#pragma omp task shared(coldest)
        for (int i = 0; i < side * side; i++)
            coldest = fmin(coldest, now[i]);
    }
    printf("%.6f %.3f %.3f\n", residual, hottest, coldest);
    free(now);
    free(next);
    return 0;
}
