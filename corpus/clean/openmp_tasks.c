// Tasks: waited for before their results are used, and ordered by their dependences.
// clean
// build: gcc -fopenmp
#include <stdio.h>

int left, right, sum, chained;

int main(void)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        left = 1;
#pragma omp task
        right = 2;
#pragma omp taskwait
        sum = left + right;
#pragma omp task depend(out : chained)
        chained = 1;
#pragma omp task depend(inout : chained)
        chained += 1;
#pragma omp task depend(in : chained)
        sum += chained;
    }
    printf("%d\n", sum);
    return 0;
}
