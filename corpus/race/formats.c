// One thread prints into a buffer, by a format that reads a name; others print what is in the buffer, scan into the name, and
// print what was scanned beside it.
#include "start.h"
#include <stdarg.h>

char buffer[64], name[32] = "nobody", other[32] = "none";
int number;

static int print(char *to, size_t size, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int length = vsnprintf(to, size, format, values); // race: other
    va_end(values);
    return length;
}

static void *printer(void *unused)
{
    char own[64];

    snprintf(buffer, sizeof buffer, "%5d %.8s", 17, name); // race: buffer race: name
    print(own, sizeof own, "%f %d %d %d %d %s", 1.5, 1, 2, 3, 4, other);
    snprintf(own, sizeof own, "%d", number); // race: number
    return unused;
}

static void *scanner(void *unused)
{
    char own[80], line[] = "somebody 12";

    snprintf(own, sizeof own, "%s", buffer); // race: buffer
    sscanf(line, "%31s %d", name, &number);  // race: name race: number
    sprintf(other, "%s", own);               // race: other
    return unused;
}

int main(void)
{
    both(printer, scanner);
    printf("%d\n", number <= 12);
    return 0;
}
