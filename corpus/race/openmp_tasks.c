// The task's result is used without a taskwait. The generating thread waits, unseen, so that another runs the task.
// build: gcc -fopenmp
#include "steps.h"
#include <stdio.h>

int result;
int copy;

int main(void)
{
#pragma omp parallel num_threads(2)
#pragma omp single
    {
#pragma omp task
        {
            result = 1; // race: result
            step_done(1);
        }
        step_wait(1);
        copy = result; // race: result
    }
    printf("%d\n", copy <= 1);
    return 0;
}
