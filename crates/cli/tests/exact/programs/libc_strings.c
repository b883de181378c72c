// Functions of <string.h>: each is the stretches it means to touch and nothing else, although the
// code behind them is written with vectors that read past the end. A stretch whose length only the
// result tells comes after those that are known at the call.
//
// watch: memory
// build: gcc -O2 -g -fno-builtin
// build: gcc -O2 -g -fno-builtin -static

#define _GNU_SOURCE
#include <string.h>
#include <strings.h>
#include <wchar.h>

static char from[128], to[128], upper[128];
static wchar_t wide[16];

// The compiler knows these functions and leaves a call out whose result nobody wants.
#define use(value) do { __typeof__(value) used = (value); asm volatile("" ::"r"(used)); } while (0)

static void copying(void)
{
    memcpy(to, from, 100);              // expect: read-range 100 from[0]; write-range 100 to[0]
    memcpy(to, from, 0);
    memcpy(to + 1, from + 2, 1);        // expect: read-range 1 from[2]; write-range 1 to[1]
    memmove(to + 3, to, 50);            // expect: read-range 50 to[0]; write-range 50 to[3]
    mempcpy(to, from, 7);               // expect: read-range 7 from[0]; write-range 7 to[0]
    memset(to, 0, 128);                 // expect: write-range 128 to[0]
    memset(to, 0, 0);
    bzero(to, 5);                       // expect: write-range 5 to[0]
    explicit_bzero(to, 6);              // expect: write-range 6 to[0]
}

static void strings(void)
{
    strcpy(from, "concurrency");        // expect: read-range 12 ?; write-range 12 from[0]
    strcpy(to, from);                   // expect: read-range 12 from[0]; write-range 12 to[0]
    stpcpy(to, from + 3);               // expect: read-range 9 from[3]; write-range 9 to[0]
    strncpy(to, from, 20);              // expect: read-range 12 from[0]; write-range 20 to[0]
    strncpy(to, from, 5);               // expect: read-range 5 from[0]; write-range 5 to[0]
    strncpy(to, from, 0);
    strcpy(to, from);                   // expect: read-range 12 from[0]; write-range 12 to[0]
    strcat(to, from);                   // expect: read-range 12 to[0]; read-range 12 from[0]; write-range 12 to[11]
    strncat(to, from, 3);               // expect: read-range 23 to[0]; read-range 3 from[0]; write-range 4 to[22]
}

static void lengths(void)
{
    use(strlen(from));                  // expect: read-range 12 from[0]
    use(strlen(from + 11));             // expect: read-range 1 from[11]
    use(strnlen(from, 100));            // expect: read-range 12 from[0]
    use(strnlen(from, 5));              // expect: read-range 5 from[0]
    use(strnlen(from, 0));
    use(wcslen(wide));                  // expect: read-range 4 wide[0]
}

static void comparing(void)
{
    to[0] = 0;                          // expect: write 1 to[0]
    use(strcmp(from, from));            // expect: read-range 12 from[0]; read-range 12 from[0]
    use(strcmp(from, to));              // expect: read-range 1 from[0]; read-range 1 to[0]
    strcpy(to, from);                   // expect: read-range 12 from[0]; write-range 12 to[0]
    to[4] = 'U';                        // expect: write 1 to[4]
    use(strcmp(from, to));              // expect: read-range 5 from[0]; read-range 5 to[0]
    use(strncmp(from, to, 3));          // expect: read-range 3 from[0]; read-range 3 to[0]
    use(strncmp(from, to, 9));          // expect: read-range 5 from[0]; read-range 5 to[0]
    use(strncmp(from, to, 0));
    use(memcmp(from, to, 10));          // expect: read-range 10 from[0]; read-range 10 to[0]
    use(memcmp(from, to, 0));
    use(strcasecmp(from, to));          // expect: read-range 12 from[0]; read-range 12 to[0]
}

static void searching(void)
{
    use(memchr(from, 'u', 50));         // expect: read-range 5 from[0]
    use(memchr(from, '?', 50));         // expect: read-range 50 from[0]
    use(memchr(from, '?', 0));
    use(memrchr(from, 'c', 12));        // expect: read-range 3 from[9]
    use(memrchr(from, '?', 12));        // expect: read-range 12 from[0]
    use(rawmemchr(from, 'n'));          // expect: read-range 3 from[0]
    use(strchr(from, 'r'));             // expect: read-range 6 from[0]
    use(strchr(from, '?'));             // expect: read-range 12 from[0]
    use(strchrnul(from, '?'));          // expect: read-range 12 from[0]
    use(strrchr(from, 'c'));            // expect: read-range 12 from[0]
    strcpy(upper, "rc");                // expect: read-range 3 ?; write-range 3 upper[0]
    use(strspn(from, upper));           // expect: read-range 3 upper[0]; read-range 2 from[0]
    use(strcspn(from, upper + 2));      // expect: read-range 1 upper[2]; read-range 12 from[0]
    use(strpbrk(from, upper));          // expect: read-range 3 upper[0]; read-range 1 from[0]
    upper[1] = 'r';                     // expect: write 1 upper[1]
    use(strstr(from, upper));           // expect: read-range 3 upper[0]; read-range 7 from[0]
    wmemset(wide, 1, 3);                // expect: write-range 12 wide[0]
    use(wmemchr(wide, 0, 16));          // expect: read-range 16 wide[0]
}

int main(void)
{
    copying();
    strings();
    lengths();
    comparing();
    searching();
    return strcmp(from, "concurrency") != 0; // expect: read-range 12 from[0]; read-range 12 ?
}
