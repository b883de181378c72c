/* Benchmark: a parallel merge sort. Two threads sort halves, one merges.
 *
 * Memory is mostly private to a thread and streamed, with short unpredictable branches: what a sort,
 * a parser or a compressor look like to an instrumenting tool.
 *
 * usage: sort [elements]     prints a checksum; exits with 1 when the result is not sorted
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 24 }; /* below this an insertion sort is faster */

struct job {
    uint32_t *data;
    uint32_t *scratch;
    size_t count;
};

static void insertion_sort(uint32_t *data, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t value = data[i];
        size_t hole = i;
        while (hole > 0 && data[hole - 1] > value) {
            data[hole] = data[hole - 1];
            hole--;
        }
        data[hole] = value;
    }
}

/* Merges data[0..middle) and data[middle..count), both sorted, by way of scratch. */
static void merge(uint32_t *data, uint32_t *scratch, size_t middle, size_t count)
{
    size_t left = 0, right = middle, out = 0;

    memcpy(scratch, data, count * sizeof *data);
    while (left < middle && right < count)
        data[out++] = scratch[left] <= scratch[right] ? scratch[left++] : scratch[right++];
    while (left < middle)
        data[out++] = scratch[left++];
    while (right < count)
        data[out++] = scratch[right++];
}

static void merge_sort(uint32_t *data, uint32_t *scratch, size_t count)
{
    if (count <= RUN) {
        insertion_sort(data, count);
        return;
    }
    size_t middle = count / 2;
    merge_sort(data, scratch, middle);
    merge_sort(data + middle, scratch + middle, count - middle);
    merge(data, scratch, middle, count);
}

static void *sort_job(void *argument)
{
    struct job *job = argument;

    merge_sort(job->data, job->scratch, job->count);
    return NULL;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 8000000;
    uint32_t *data = malloc(count * sizeof *data);
    uint32_t *scratch = malloc(count * sizeof *scratch);
    if (!data || !scratch)
        return 2;

    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        data[i] = (uint32_t)(state >> 32);
    }

    size_t middle = count / 2;
    struct job jobs[2] = {{data, scratch, middle}, {data + middle, scratch + middle, count - middle}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, sort_job, &jobs[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    merge(data, scratch, middle, count);

    uint64_t checksum = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && data[i - 1] > data[i])
            return 1;
        checksum = checksum * 31 + data[i];
    }
    printf("%016lx\n", (unsigned long)checksum);
    free(data);
    free(scratch);
    return 0;
}
