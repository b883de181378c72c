// Main reads its own local while the thread it gave it to writes it.
#include "start.h"

static void *writer(void *place)
{
    *(volatile int *)place = 42; // race: stack value
    return NULL;
}

int main(void)
{
    volatile int value = 0;
    pthread_t thread = start(writer, (void *)&value);
    int early = value; // race: stack value
    finish(thread);
    printf("%d\n", early == 0 || early == 42);
    return 0;
}
