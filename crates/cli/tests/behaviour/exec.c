// exit: 7
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    if (argc > 1) {
        printf("second life with %s\n", argv[1]);
        return 7;
    }
    puts("first life");
    fflush(stdout);
    execl("/proc/self/exe", "name", "argument", (char *)0);
    return 1;
}
