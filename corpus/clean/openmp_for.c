// A parallel loop: each iteration its own element, and the implicit barrier at its end.
// clean
// build: gcc -fopenmp
#include <stdio.h>

int values[64], doubled[64];

int main(void)
{
    int sum = 0;

#pragma omp parallel num_threads(3)
    {
#pragma omp for
        for (int i = 0; i < 64; i++)
            values[i] = i;
#pragma omp for
        for (int i = 0; i < 64; i++)
            doubled[i] = values[63 - i] * 2;
    }
    for (int i = 0; i < 64; i++)
        sum += doubled[i];
    printf("%d\n", sum);
    return 0;
}
