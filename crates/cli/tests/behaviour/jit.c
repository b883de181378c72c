// exit: 0
// Code written at run time, changed, and run from two threads.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
typedef int (*function)(int);
static function make(unsigned char *at, int add) {
    unsigned char code[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3}; /* lea eax, [rdi + add]; ret */
    memcpy(code + 2, &add, 4);
    memcpy(at, code, sizeof code);
    return (function)at;
}
static void *work(void *page) {
    long sum = 0;
    for (int i = 0; i < 200; i++) sum += ((function)page)(i);
    return (void *)sum;
}
int main(void) {
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long total = 0;
    for (int round = 0; round < 5; round++) {
        make(page, round);
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, page);
        for (int i = 0; i < 2; i++) {
            void *sum;
            pthread_join(threads[i], &sum);
            total += (long)sum;
        }
    }
    printf("%ld\n", total);
    return 0;
}
