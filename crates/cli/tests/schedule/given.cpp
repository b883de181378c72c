// What the processor gives a program that asks it: time, chance, which processor it is.
#include <cpuid.h>
#include <cstdio>
#include <random>
#include <thread>
#include <x86intrin.h>

int main() {
    unsigned processor, a, b, c, d;
    unsigned long long random;
    unsigned short narrow;
    unsigned long before = __rdtsc(), after = __rdtscp(&processor);
    asm volatile("rdrand %0" : "=r"(random)::"cc");
    asm volatile("rdrand %0" : "=r"(narrow)::"cc");
    __cpuid(1, a, b, c, d);
    printf("%lx %d %u %llx %hx %x\n", before, after > before, processor, random, narrow, b);
    std::thread([] { printf("%lx %x\n", __rdtsc(), std::random_device()()); }).join();
    // Who waits by the clock gets there.
    for (unsigned long start = __rdtsc(); __rdtsc() - start < 1000000;) {
    }
}
