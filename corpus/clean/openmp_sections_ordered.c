// Sections, single, master with barriers, and an ordered loop.
// clean
// build: gcc -fopenmp
#include <stdio.h>

int left, right, prepared, log_length;
int lines[32];

int main(void)
{
#pragma omp parallel num_threads(2)
    {
#pragma omp sections
        {
#pragma omp section
            left = 1;
#pragma omp section
            right = 2;
        }
#pragma omp single
        prepared = left + right;
#pragma omp for ordered schedule(dynamic)
        for (int i = 0; i < 32; i++) {
            int line = i * prepared;
#pragma omp ordered
            lines[log_length++] = line;
        }
#pragma omp master
        prepared = 0;
#pragma omp barrier
        if (prepared != 0)
            log_length = -1;
    }
    printf("%d\n", log_length);
    return 0;
}
