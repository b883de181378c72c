// exit: 0
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
static sigjmp_buf back;
static jmp_buf plain;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void handler(int signal) { siglongjmp(back, signal); }
static void deep(int n) {
    volatile char space[100];
    space[n] = 1;
    if (n == 0) longjmp(plain, 17);
    deep(n - 1);
}
int main(void) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 50; i++) {
        int from = sigsetjmp(back, 1);
        if (from == 0) {
            pthread_mutex_lock(&lock);
            raise(SIGUSR1);
        }
        pthread_mutex_unlock(&lock);
        if (setjmp(plain) == 0) deep(20);
    }
    puts("back");
    return pthread_mutex_trylock(&lock);
}
