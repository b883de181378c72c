// One thread prints into a buffer and by a name and a number, the other prints what is in the buffer and scans into the name
// and the number; a string behind more numbers than registers hold is found, too.
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

    snprintf(buffer, sizeof buffer, "%5d", 17); // race: buffer
    snprintf(own, sizeof own, "%.8s", name); // race: name
    snprintf(own, sizeof own, "%d", number); // race: number
    print(own, sizeof own, "%f %d %d %d %d %s", 1.5, 1, 2, 3, 4, other);
    return unused;
}

static void *scanner(void *unused)
{
    char own[80], line[] = "somebody 12";

    snprintf(own, sizeof own, "<%s>", buffer); // race: buffer
    sscanf(line, "%31s", name); // race: name
    sscanf(line, "%*s %d", &number); // race: number
    snprintf(other, sizeof other, "%d", number); // race: other
    return unused;
}

int main(void)
{
    both(printer, scanner);
    printf("%d\n", number <= 12);
    return 0;
}
