// Waits for locks of files, of three kinds, for children and for messages: the order in which they end is the schedule's.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 3 };

static int queue;
static long within_flock, within_fcntl;

static void alone(long *inside, const char *how, long number)
{
    if (__atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST) != 1)
        abort();
    sched_yield();
    printf("%s %ld\n", how, number);
    __atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
}

static void *locker(void *argument)
{
    long number = (long)argument;
    int file = open("locked", O_RDWR | O_CREAT, 0600);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct { long kind; char text[8]; } message = {1, "x"};

    for (int i = 0; i < ROUNDS; i++) {
        if (flock(file, LOCK_EX) != 0)
            abort();
        alone(&within_flock, "flock", number);
        flock(file, LOCK_UN);
        whole.l_type = F_WRLCK;
        if (fcntl(file, F_OFD_SETLKW, &whole) != 0)
            abort();
        alone(&within_fcntl, "fcntl", number);
        whole.l_type = F_UNLCK;
        fcntl(file, F_OFD_SETLK, &whole);
        if (msgrcv(queue, &message, sizeof message.text, 1, 0) < 0)
            abort();
        printf("message %ld\n", number);
        msgsnd(queue, &message, sizeof message.text, 0);
    }
    close(file);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct { long kind; char text[8]; } message = {1, "x"};

    queue = msgget(IPC_PRIVATE, 0600);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, locker, (void *)i);
    msgsnd(queue, &message, sizeof message.text, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
