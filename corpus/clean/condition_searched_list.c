// The condition is a search through a list, inlined before the loop and again behind the wait; the consumer finds its
// job at once, without a wait (asynchronous reading in compressors works like this).
// clean
#include "steps.h"
#include "start.h"

#define JOBS 4

struct job {
    long number;
    int result;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t completed = PTHREAD_COND_INITIALIZER;
struct job jobs[JOBS];
long numbers[JOBS];
int count;

static inline int find(long number)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] == number)
            return i;
    return -1;
}

static void *producer(void *unused)
{
    for (int i = 0; i < JOBS; i++) {
        jobs[i].result = 10 * i;
        pthread_mutex_lock(&lock);
        numbers[count++] = i;
        pthread_cond_signal(&completed);
        pthread_mutex_unlock(&lock);
    }
    step_done(1);
    return unused;
}

static void *consumer(void *unused)
{
    int at;

    step_wait(1);
    pthread_mutex_lock(&lock);
    at = find(2);
    while (at < 0) {
        pthread_cond_wait(&completed, &lock);
        at = find(2);
    }
    pthread_mutex_unlock(&lock);
    jobs[at].result++;
    return unused;
}

int main(void)
{
    both(producer, consumer);
    printf("%d\n", jobs[2].result);
    return 0;
}
