// `master` has no implicit barrier, unlike `single`.
// build: gcc -fopenmp
#include <stdio.h>

int prepared;
int seen[2];

int main(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        prepared = 1; // race: prepared
#pragma omp for schedule(static)
        for (int i = 0; i < 2; i++)
            seen[i] = prepared; // race: prepared
    }
    printf("%d\n", seen[0] + seen[1] <= 2);
    return 0;
}
