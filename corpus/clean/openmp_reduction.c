// The same sum by reduction, by critical, and by atomic.
// clean
// build: gcc -fopenmp
#include <stdio.h>

int by_reduction, by_critical, by_named, by_atomic;

int main(void)
{
#pragma omp parallel for num_threads(3) reduction(+ : by_reduction)
    for (int i = 0; i < 64; i++) {
        by_reduction += i;
#pragma omp critical
        by_critical += i;
#pragma omp critical(name)
        by_named += i;
#pragma omp atomic
        by_atomic += i;
    }
    printf("%d %d %d %d\n", by_reduction, by_critical, by_named, by_atomic);
    return 0;
}
