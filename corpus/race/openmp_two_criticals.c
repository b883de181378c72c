// Two critical sections of different names protect nothing from each other. Each section waits for the other, so that two
// threads run them.
// build: gcc -fopenmp
#include "steps.h"
#include <stdio.h>

int shared;

int main(void)
{
#pragma omp parallel sections num_threads(2)
    {
#pragma omp section
        {
#pragma omp critical(one)
            shared += 1; // race: shared
            step_done(1);
            step_wait(2);
        }
#pragma omp section
        {
            step_wait(1);
#pragma omp critical(other)
            shared += 2; // race: shared
            step_done(2);
        }
    }
    printf("%d\n", shared > 0);
    return 0;
}
