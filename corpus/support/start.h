// Starting and ending threads, for the programs of the corpus: one word each, errors fatal.
#pragma once
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *thread_body(void *);

static inline pthread_t start(thread_body *body, void *argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, argument) != 0)
        abort();
    return thread;
}

static inline void finish(pthread_t thread)
{
    if (pthread_join(thread, NULL) != 0)
        abort();
}

// Runs both at once and waits for both: nothing orders the one and the other.
static inline void both(thread_body *one, thread_body *other)
{
    pthread_t first = start(one, NULL);
    pthread_t second = start(other, NULL);

    finish(first);
    finish(second);
}
