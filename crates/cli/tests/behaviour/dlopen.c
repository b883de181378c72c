// exit: 0
// flags: -ldl
// A library is loaded, used from two threads, unloaded and loaded again.
#ifdef PLUGIN
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;
int bump(int by) {
    pthread_mutex_lock(&lock);
    count += by;
    int now = count;
    pthread_mutex_unlock(&lock);
    return now;
}
#else
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static int (*bump)(int);
static void *work(void *unused) {
    for (int i = 0; i < 100; i++) bump(1);
    return 0;
}
int main(void) {
    for (int round = 0; round < 5; round++) {
        void *library = dlopen("./plugin.so", RTLD_NOW);
        if (!library) return puts(dlerror()), 1;
        bump = (int (*)(int))dlsym(library, "bump");
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, 0);
        for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
        printf("%d\n", bump(0));
        dlclose(library);
    }
    return 0;
}
#endif
