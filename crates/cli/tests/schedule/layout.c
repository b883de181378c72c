// Where the kernel puts what is mapped right after a thread has ended.
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

static void *body(void *unused)
{
    return unused;
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;

        pthread_create(&thread, NULL, body, NULL);
        pthread_join(thread, NULL);
        printf("%p\n", mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }
    return 0;
}
