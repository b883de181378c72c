// Three locks in a circle, and other work under other locks in between.
// fails: deadlock
#include "stagger.h"
#include "start.h"

static pthread_mutex_t locks[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                   PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int lines;

static void log_line(void)
{
    pthread_mutex_lock(&log_lock);
    lines++;
    pthread_mutex_unlock(&log_lock);
}

static void *stage(void *argument)
{
    long i = (long)argument;
    work(i * LATE);
    for (int line = 0; line < 5; line++)
        log_line();
    pthread_mutex_lock(&locks[i]);
    log_line();
    pthread_mutex_lock(&locks[(i + 1) % 3]);
    log_line();
    pthread_mutex_unlock(&locks[(i + 1) % 3]);
    pthread_mutex_unlock(&locks[i]);
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        threads[i] = start(stage, (void *)i);
    for (int i = 0; i < 3; i++)
        finish(threads[i]);
    return 0;
}
