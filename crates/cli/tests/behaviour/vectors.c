// exit: 0
// The vector registers, upper halves included, hold their values across everything watched.
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static int data[64];
__attribute__((target("avx2"))) static int wide(int rounds) {
    __m256i a = _mm256_set1_epi32(3), sum = _mm256_setzero_si256();
    __m256d d = _mm256_set_pd(1, 2, 3, 4), total = _mm256_setzero_pd();
    for (int i = 0; i < rounds; i++) {
        __m256i index = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(a, _mm256_i32gather_epi32(data, index, 4)));
        total = _mm256_add_pd(total, d);
        data[i % 64] += 0;
    }
    int lanes[8];
    double doubles[4];
    _mm256_storeu_si256((__m256i *)lanes, sum);
    _mm256_storeu_pd(doubles, total);
    for (int i = 0; i < 8; i++)
        if (lanes[i] != 3 * rounds) return 1;
    return doubles[0] != 4.0 * rounds || doubles[3] != 1.0 * rounds;
}
static void *work(void *unused) {
    return (void *)(long)(__builtin_cpu_supports("avx2") ? wide(300) : 0);
}
int main(void) {
    pthread_t threads[3];
    long wrong = 0;
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    printf("%ld wrong\n", wrong);
    return wrong != 0;
}
