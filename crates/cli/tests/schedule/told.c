// What the kernel says of the process and the machine, in files and in sysinfo.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static void tell(const char *path)
{
    char line[4096];
    FILE *file = fopen(path, "r");

    if (!file)
        abort();
    printf("== %s\n", path);
    while (fgets(line, sizeof line, file))
        fputs(line, stdout);
    fclose(file);
}

static void *body(void *unused)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)getpid(), (int)gettid());
    tell(path);
    tell("/proc/thread-self/status");
    return unused;
}

// The same descriptor, read twice, and a copy of it: time has passed.
static void rewound(void)
{
    char first[64] = "", second[64] = "";
    int file = open("/proc/uptime", O_RDONLY), copy = dup(file);
    const struct timespec second_long = {.tv_sec = 1};

    if (read(file, first, 63) <= 0)
        abort();
    nanosleep(&second_long, NULL);
    lseek(copy, 0, SEEK_SET);
    if (read(copy, second, 63) <= 0)
        abort();
    printf("later: %d\n", atof(second) >= atof(first) + 1);
    close(file);
    close(copy);
}

int main(void)
{
    pthread_t thread;
    struct sysinfo said;

    pthread_create(&thread, NULL, body, NULL);
    tell("/proc/self/maps");
    tell("/proc/self/statm");
    pthread_join(thread, NULL);
    tell("/proc/self/stat");
    tell("/proc/uptime");
    tell("/proc/loadavg");
    tell("/proc/meminfo");
    tell("/proc/stat");
    tell("/proc/cpuinfo");
    tell("/proc/sys/kernel/random/uuid");
    sysinfo(&said);
    printf("%ld %lu %lu %d\n", said.uptime, said.loads[0], said.freeram, said.procs);
    printf("%ld of %ld\n", sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF));
    rewound();
    return 0;
}
