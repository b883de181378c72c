// The same constructs through clang and its own library: loops, critical, atomic, reduction, tasks, sections.
// clean
// build: clang -fopenmp
// needs: dynamic
#include <stdio.h>

int values[64];
int by_reduction, by_critical, by_atomic, left, right, sum;

int main(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp for
        for (int i = 0; i < 64; i++)
            values[i] = i;
#pragma omp for reduction(+ : by_reduction)
        for (int i = 0; i < 64; i++)
            by_reduction += values[63 - i];
#pragma omp critical
        by_critical += 1;
#pragma omp atomic
        by_atomic += 1;
#pragma omp barrier
#pragma omp single
        {
#pragma omp task
            left = by_critical;
#pragma omp task
            right = by_atomic;
#pragma omp taskwait
            sum = left + right;
        }
    }
    printf("%d %d\n", by_reduction, sum);
    return 0;
}
