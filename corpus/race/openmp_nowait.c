// `nowait` takes the barrier away between two loops that need it.
// build: gcc -fopenmp
#include <stdio.h>

int values[64], doubled[64];

int main(void)
{
    int sum = 0;

#pragma omp parallel num_threads(2)
    {
#pragma omp for nowait schedule(static)
        for (int i = 0; i < 64; i++)
            values[i] = i; // race: values
#pragma omp for schedule(static)
        for (int i = 0; i < 64; i++)
            doubled[i] = values[63 - i] * 2; // race: values
    }
    for (int i = 0; i < 64; i++)
        sum += doubled[i];
    printf("%d\n", sum >= 0);
    return 0;
}
