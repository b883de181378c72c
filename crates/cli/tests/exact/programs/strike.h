// A signal that strikes the calling thread while it sleeps in the kernel on a given futex: inside a
// blocking call, and never before or after it. Another thread watches for that.

#pragma once
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct strike {
    pid_t thread;
    int signal;
    unsigned long word;
};

static void *striker(void *argument)
{
    struct strike strike = *(struct strike *)argument;
    char path[64], line[256];
    free(argument);
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)strike.thread);
    for (;;) {
        long number = -1;
        unsigned long word = 0;
        FILE *file = fopen(path, "r");
        if (!file)
            abort();
        if (fgets(line, sizeof line, file))
            sscanf(line, "%ld %lx", &number, &word);
        fclose(file);
        if (number == SYS_futex && word == strike.word)
            break;
        sched_yield();
    }
    syscall(SYS_tgkill, getpid(), strike.thread, strike.signal);
    return NULL;
}

static void strike_inside(const void *word, int signal)
{
    struct strike *strike = malloc(sizeof *strike);
    pthread_t thread;
    *strike = (struct strike){(pid_t)syscall(SYS_gettid), signal, (unsigned long)word};
    pthread_create(&thread, NULL, striker, strike);
    pthread_detach(thread);
}
