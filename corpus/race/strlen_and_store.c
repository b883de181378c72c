// One thread measures a string, the other shortens it.
#include "start.h"
#include <string.h>

char text[64] = "a string of some length, to be cut short";

static void *measure(void *result)
{
    *(size_t *)result = strlen(text); // race: text
    return NULL;
}

static void *cut(void *unused)
{
    text[5] = '\0'; // race: text
    return unused;
}

int main(void)
{
    size_t length;
    pthread_t first = start(measure, &length);
    pthread_t second = start(cut, NULL);
    finish(first);
    finish(second);
    printf("%d\n", length >= 5);
    return 0;
}
