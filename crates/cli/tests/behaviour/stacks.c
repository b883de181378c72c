// exit: 0
// A thread with the smallest stack there is, and a recursion that nearly fills it.
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
static int deep(int n) {
    volatile int here = n;
    return n ? deep(n - 1) + here % 2 : 0;
}
static void *work(void *unused) { return (void *)(long)deep(150); }
int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    pthread_t thread;
    pthread_create(&thread, &attributes, work, 0);
    void *result;
    pthread_join(thread, &result);
    printf("%ld %d\n", (long)result, deep(20000));
    return 0;
}
