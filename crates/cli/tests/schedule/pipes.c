// Two readers of one pipe, a third that polls another with time-outs, and a write larger than a pipe.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int in[2], out[2], big[2];
static void *echo(void *unused) {
    char byte;
    while (read(in[0], &byte, 1) == 1) {
        usleep(100);
        if (write(out[1], &byte, 1) != 1 || byte == 50)
            break;
    }
    return unused;
}
static void *collect(void *unused) {
    unsigned hash = 0;
    char byte;
    for (;;) {
        struct pollfd ready = {out[0], POLLIN, 0};
        if (poll(&ready, 1, 1) == 0) {
            hash = hash * 7 + 1;
            continue;
        }
        if (read(out[0], &byte, 1) != 1)
            break;
        hash = hash * 31 + (unsigned)byte;
    }
    return (void *)(long)hash;
}
static void *drain(void *unused) {
    char bytes[5000];
    long all = 0, n;
    while ((n = read(big[0], bytes, sizeof bytes)) > 0)
        all += n;
    (void)unused;
    return (void *)all;
}
int main(void) {
    pthread_t a, b, c, d;
    void *hash, *all;
    if (pipe(in) || pipe(out) || pipe(big))
        return 1;
    pthread_create(&a, NULL, echo, NULL);
    pthread_create(&b, NULL, echo, NULL);
    pthread_create(&c, NULL, collect, NULL);
    pthread_create(&d, NULL, drain, NULL);
    for (int i = 1; i <= 20; i++) {
        char byte = i > 18 ? 50 : (char)i;
        if (write(in[1], &byte, 1) != 1)
            return 1;
    }
    if (write(big[1], calloc(1, 200000), 200000) != 200000)
        return 1;
    close(big[1]);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    close(out[1]);
    pthread_join(c, &hash);
    pthread_join(d, &all);
    printf("%lx %ld\n", (long)hash, (long)all);
    return 0;
}
