/* Benchmark: a block compressor with worker threads and a queue, the shape of pigz or pbzip2.
 *
 * Main cuts generated text into blocks and queues them; workers compress each block with a hash-chain LZ77 and count
 * the frequencies of the literals for an entropy estimate; results go back through a second queue and are taken
 * in order. Queues are a mutex and two condition variables; blocks are heap memory handed from thread to thread.
 *
 * usage: compress [megabytes] [threads]     prints the sizes; exits with 1 when a block does not decompress
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 * 1024, HASH_BITS = 13, SHORTEST = 4, LONGEST = 255, QUEUE = 8 };

struct block {
    size_t number, size, packed_size;
    unsigned char *data, *packed;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct block *items[QUEUE];
    size_t put, taken;
};

static struct queue to_do = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .not_empty = PTHREAD_COND_INITIALIZER,
                             .not_full = PTHREAD_COND_INITIALIZER};
static struct queue done = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .not_empty = PTHREAD_COND_INITIALIZER,
                            .not_full = PTHREAD_COND_INITIALIZER};

static void put(struct queue *queue, struct block *item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->put - queue->taken == QUEUE)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    queue->items[queue->put++ % QUEUE] = item;
    pthread_cond_signal(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static struct block *take(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->put == queue->taken)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    struct block *item = queue->items[queue->taken++ % QUEUE];
    pthread_cond_signal(&queue->not_full);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

static unsigned hash_at(const unsigned char *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof word);
    return word * 2654435761u >> (32 - HASH_BITS);
}

/* A literal is 0 and the byte; a match is its length and its distance, low byte first. */
static size_t pack(const unsigned char *data, size_t size, unsigned char *packed)
{
    static const size_t never = (size_t)-1;
    size_t *last = malloc((sizeof *last) << HASH_BITS);
    size_t out = 0;

    if (!last)
        exit(2);
    for (size_t i = 0; i < (size_t)1 << HASH_BITS; i++)
        last[i] = never;
    for (size_t i = 0; i < size;) {
        size_t length = 0, from = never;
        if (i + SHORTEST <= size) {
            unsigned hash = hash_at(data + i);
            from = last[hash];
            last[hash] = i;
            if (from != never && i - from < 65536)
                while (length < LONGEST && i + length < size && data[from + length] == data[i + length])
                    length++;
        }
        if (length >= SHORTEST) {
            packed[out++] = (unsigned char)length;
            packed[out++] = (unsigned char)(i - from);
            packed[out++] = (unsigned char)((i - from) >> 8);
            i += length;
        } else {
            packed[out++] = 0;
            packed[out++] = data[i++];
        }
    }
    free(last);
    return out;
}

static size_t unpack(const unsigned char *packed, size_t packed_size, unsigned char *data)
{
    size_t out = 0;

    for (size_t i = 0; i < packed_size;) {
        size_t length = packed[i++];
        if (length == 0) {
            data[out++] = packed[i++];
            continue;
        }
        size_t distance = packed[i] | (size_t)packed[i + 1] << 8;
        i += 2;
        for (; length > 0; length--, out++)
            data[out] = data[out - distance];
    }
    return out;
}

static void *worker(void *unused)
{
    struct block *block;

    while ((block = take(&to_do)) != NULL) {
        block->packed = malloc(2 * BLOCK + 8);
        if (!block->packed)
            exit(2);
        block->packed_size = pack(block->data, block->size, block->packed);
        put(&done, block);
    }
    return unused;
}

static void generate(unsigned char *data, size_t size, uint64_t *state)
{
    static const char *const words[] = {"thread ", "lock ", "the ", "of ", "race ", "warp ", "and ", "weft ",
                                        "shuttle ", "in ", "order ", "loom ", "a ", "comb ", "keeps ", "apart\n"};

    for (size_t i = 0; i < size;) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        const char *word = words[*state >> 60];
        for (; *word && i < size; word++)
            data[i++] = (unsigned char)*word;
    }
}

static int check(struct block *block, size_t *total)
{
    unsigned char *again = malloc(2 * BLOCK);
    size_t size = unpack(block->packed, block->packed_size, again);
    int right = size == block->size && memcmp(again, block->data, size) == 0;

    *total += block->packed_size;
    free(again);
    free(block->packed);
    free(block->data);
    free(block);
    return right;
}

int main(int argc, char **argv)
{
    size_t blocks = (argc > 1 ? strtoul(argv[1], NULL, 10) : 32) * 1024 * 1024 / BLOCK;
    size_t threads = argc > 2 ? strtoul(argv[2], NULL, 10) : 2;
    pthread_t *handles = calloc(threads, sizeof *handles);
    uint64_t state = 1;
    size_t packed = 0, taken = 0;
    int right = 1;

    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, worker, NULL) != 0)
            return 2;
    for (size_t i = 0; i < blocks; i++) {
        struct block *block = calloc(1, sizeof *block);
        block->number = i;
        block->size = BLOCK;
        block->data = malloc(BLOCK);
        generate(block->data, BLOCK, &state);
        put(&to_do, block);
        if (i - taken >= QUEUE / 2) { /* never more under way than both queues hold */
            right &= check(take(&done), &packed);
            taken++;
        }
    }
    for (; taken < blocks; taken++)
        right &= check(take(&done), &packed);
    for (size_t i = 0; i < threads; i++)
        put(&to_do, NULL);
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    printf("%zu to %zu\n", blocks * BLOCK, packed);
    return right ? 0 : 1;
}
