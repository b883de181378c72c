// Two threads ask the kernel for random bytes, by all ways there are.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

static unsigned long from(const char *name) {
    unsigned long chance = 0;
    int file = open(name, O_RDONLY);
    if (file < 0 || read(file, &chance, sizeof chance) != sizeof chance)
        chance = 0;
    close(file);
    return chance;
}

static void *ask(void *unused) {
    unsigned long buffered = 0, called = 0;
    FILE *file = fopen("/dev/urandom", "r");
    if (fread(&buffered, sizeof buffered, 1, file) != 1)
        buffered = 0;
    fclose(file);
    if (getrandom(&called, sizeof called, 0) != sizeof called)
        called = 0;
    printf("%016lx %016lx %016lx %016lx\n", from("/dev/urandom"), from("/dev/random"), buffered, called);
    return unused;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, ask, NULL);
    ask(NULL);
    pthread_join(other, NULL);
    return 0;
}
