// A sum without a reduction clause.
// build: gcc -fopenmp
#include <stdio.h>

volatile int sum; // one load and one store each, at their line

int main(void)
{
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 64; i++)
        sum += i; // race: sum
    printf("%d\n", sum >= 0);
    return 0;
}
