// exit: 134
#include <assert.h>
#include <stdio.h>
int main(int argc, char **argv) {
    puts("before");
    fflush(stdout);
    __assert_fail("the invariant", "file.c", 1, "main");
}
