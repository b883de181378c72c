// An OpenMP team: a loop, a critical section, a barrier, a single.
#include <omp.h>
#include <stdio.h>
int main(void) {
    long sum = 0, order = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 1000; i++)
        sum += i;
#pragma omp parallel num_threads(3)
    {
        for (int i = 0; i < 5; i++) {
#pragma omp critical
            order = order * 31 + omp_get_thread_num() + 1;
#pragma omp barrier
        }
#pragma omp single
        order++;
    }
    printf("%ld %lx %d\n", sum, order, omp_get_max_threads());
    return 0;
}
