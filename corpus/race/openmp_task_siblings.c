// Two sibling tasks share a variable, with no dependence between them; each waits for the other, so that two threads run
// them.
// build: gcc -fopenmp
#include "steps.h"
#include <stdio.h>

int shared;

int main(void)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        {
            shared += 1; // race: shared
            step_done(1);
            step_wait(2);
        }
#pragma omp task
        {
            step_wait(1);
            shared += 2; // race: shared
            step_done(2);
        }
#pragma omp taskwait
    }
    printf("%d\n", shared > 0);
    return 0;
}
