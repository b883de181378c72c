// A temporary declared outside of the region is shared by all, although everybody means their own.
// build: gcc -fopenmp
#include <stdio.h>

volatile int temporary;
int values[32];

int main(void)
{
#pragma omp parallel for num_threads(2) schedule(static)
    for (int i = 0; i < 32; i++) {
        temporary = i * 3; // race: temporary
        values[i] = temporary; // race: temporary
    }
    printf("%d\n", values[0] >= 0);
    return 0;
}
