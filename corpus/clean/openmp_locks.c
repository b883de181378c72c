// OpenMP's own locks, simple and nested.
// clean
// build: gcc -fopenmp
#include <omp.h>
#include <stdio.h>

omp_lock_t lock;
omp_nest_lock_t nested;
int counter, nested_counter;

int main(void)
{
    omp_init_lock(&lock);
    omp_init_nest_lock(&nested);
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 10; i++) {
        omp_set_lock(&lock);
        counter++;
        omp_unset_lock(&lock);
        omp_set_nest_lock(&nested);
        omp_set_nest_lock(&nested);
        omp_unset_nest_lock(&nested);
        nested_counter++;
        omp_unset_nest_lock(&nested);
    }
    printf("%d %d\n", counter, nested_counter);
    return 0;
}
