/* Benchmark: a small key-value server under load, with its clients in the same process.
 *
 * One thread waits with epoll and queues descriptors that are readable; workers take them, read a request, change a
 * table of strings with a read-write lock per stripe, and answer. Client threads talk to it over socket pairs,
 * one request at a time.
 *
 * usage: server [requests per client] [clients] [workers]     prints how many were answered
 */

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MESSAGE = 64, STRIPES = 16, SLOTS = 512, QUEUE = 256, EVENTS = 16 };

struct entry {
    char key[24], value[32];
};

struct stripe {
    pthread_rwlock_t lock;
    struct entry entries[SLOTS];
};

static struct stripe table[STRIPES];
static int poll_set;
static size_t requests = 20000, clients = 2, workers = 2;

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static int queue[QUEUE];
static size_t queued, dequeued;
static int stopping;

static void enqueue(int descriptor)
{
    pthread_mutex_lock(&queue_lock);
    queue[queued++ % QUEUE] = descriptor; /* at most one entry a client: it never overflows */
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static int dequeue(void)
{
    int descriptor = -1;

    pthread_mutex_lock(&queue_lock);
    while (queued == dequeued && !stopping)
        pthread_cond_wait(&queue_filled, &queue_lock);
    if (queued != dequeued)
        descriptor = queue[dequeued++ % QUEUE];
    pthread_mutex_unlock(&queue_lock);
    return descriptor;
}

static void watch(int descriptor, int operation)
{
    struct epoll_event interest = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = descriptor};

    if (epoll_ctl(poll_set, operation, descriptor, &interest) != 0)
        exit(2);
}

static void *dispatcher(void *unused)
{
    struct epoll_event events[EVENTS];
    size_t open = clients;

    while (open > 0) {
        int ready = epoll_wait(poll_set, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            char byte;
            if (recv(events[i].data.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
                open--;
            else
                enqueue(events[i].data.fd);
        }
    }
    pthread_mutex_lock(&queue_lock);
    stopping = 1;
    pthread_cond_broadcast(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
    return unused;
}

static void transfer(int descriptor, char *message, int sending)
{
    for (size_t moved = 0; moved < MESSAGE;) {
        ssize_t now = sending ? send(descriptor, message + moved, MESSAGE - moved, MSG_NOSIGNAL)
                              : recv(descriptor, message + moved, MESSAGE - moved, 0);
        if (now <= 0 && errno != EINTR)
            exit(2);
        moved += now > 0 ? (size_t)now : 0;
    }
}

static unsigned long hash_of(const char *key)
{
    unsigned long hash = 5381;

    for (; *key; key++)
        hash = hash * 33 + (unsigned char)*key;
    return hash;
}

/* "set KEY VALUE" or "get KEY"; the answer replaces the request. */
static void answer(char *message)
{
    char key[24], value[32];
    int is_set = sscanf(message, "set %23s %31s", key, value) == 2;

    if (!is_set && sscanf(message, "get %23s", key) != 1)
        exit(2);
    unsigned long hash = hash_of(key);
    struct stripe *stripe = &table[hash % STRIPES];
    struct entry *entry = &stripe->entries[hash / STRIPES % SLOTS];
    if (is_set) {
        pthread_rwlock_wrlock(&stripe->lock);
        strcpy(entry->key, key);
        strcpy(entry->value, value);
        pthread_rwlock_unlock(&stripe->lock);
        strcpy(message, "stored");
    } else {
        pthread_rwlock_rdlock(&stripe->lock);
        int found = strcmp(entry->key, key) == 0;
        snprintf(message, MESSAGE, "%s", found ? entry->value : "none");
        pthread_rwlock_unlock(&stripe->lock);
    }
}

static void *worker(void *unused)
{
    char message[MESSAGE];
    int descriptor;

    while ((descriptor = dequeue()) >= 0) {
        transfer(descriptor, message, 0);
        answer(message);
        transfer(descriptor, message, 1);
        watch(descriptor, EPOLL_CTL_MOD);
    }
    return unused;
}

struct client {
    int descriptor;
    size_t number, answered;
};

static void *run_client(void *data)
{
    struct client *client = data;
    char message[MESSAGE];
    uint64_t state = client->number + 1;

    for (size_t i = 0; i < requests; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned key = (unsigned)(state >> 48) % 4096;
        memset(message, 0, sizeof message);
        if (state >> 33 & 3)
            snprintf(message, sizeof message, "get key%u", key);
        else
            snprintf(message, sizeof message, "set key%u value%zu", key, i);
        transfer(client->descriptor, message, 1);
        transfer(client->descriptor, message, 0);
        client->answered += message[0] != '\0';
    }
    close(client->descriptor);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        requests = strtoul(argv[1], NULL, 10);
    if (argc > 2)
        clients = strtoul(argv[2], NULL, 10);
    if (argc > 3)
        workers = strtoul(argv[3], NULL, 10);
    if (clients > QUEUE)
        return 2;
    poll_set = epoll_create1(0);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_rwlock_init(&table[i].lock, NULL);

    struct client *all = calloc(clients, sizeof *all);
    pthread_t *handles = calloc(clients + workers + 1, sizeof *handles);
    size_t started = 0, answered = 0;
    for (size_t i = 0; i < clients; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            return 2;
        all[i] = (struct client){.descriptor = ends[1], .number = i};
        watch(ends[0], EPOLL_CTL_ADD);
    }
    pthread_create(&handles[started++], NULL, dispatcher, NULL);
    for (size_t i = 0; i < workers; i++)
        pthread_create(&handles[started++], NULL, worker, NULL);
    for (size_t i = 0; i < clients; i++)
        pthread_create(&handles[started++], NULL, run_client, &all[i]);
    for (size_t i = 0; i < started; i++)
        pthread_join(handles[i], NULL);
    for (size_t i = 0; i < clients; i++)
        answered += all[i].answered;
    printf("%zu\n", answered);
    return answered == clients * requests ? 0 : 1;
}
