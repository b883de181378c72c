// A sum without a reduction, through clang's library.
// build: clang -fopenmp
// needs: dynamic
#include <stdio.h>

volatile int sum;

int main(void)
{
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 8; i++)
        sum += i; // race: sum
    printf("%d\n", sum >= 0);
    return 0;
}
