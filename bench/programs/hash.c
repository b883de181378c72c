/* Benchmark: two threads count words in one hash table with a mutex per bucket.
 *
 * Every operation takes and releases a lock, compares strings and follows pointers through memory
 * that both threads write: what hooked synchronisation costs shows here first.
 *
 * usage: hash [operations per thread]     prints how many words were counted, and a checksum
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 2,
    BUCKETS = 1 << 14,
    VOCABULARY = 60000, /* distinct words: chains of about four */
    WORD_BYTES = 24,
};

struct entry {
    struct entry *next;
    uint64_t hash;
    uint64_t count;
    char word[WORD_BYTES];
};

struct bucket {
    pthread_mutex_t lock;
    struct entry *chain;
};

static struct bucket table[BUCKETS];
static size_t operations = 4000000;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The n-th word of the vocabulary: its number in base 20, in letters. */
static size_t spell(uint64_t n, char *word)
{
    size_t length = 0;

    for (n += 8000; n > 0; n /= 20)
        word[length++] = (char)('a' + n % 20);
    word[length] = '\0';
    return length;
}

/* FNV-1a. */
static uint64_t hash_of(const char *word, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
    return hash;
}

static struct entry *find_or_add(struct bucket *bucket, uint64_t hash, const char *word)
{
    for (struct entry *entry = bucket->chain; entry; entry = entry->next)
        if (entry->hash == hash && strcmp(entry->word, word) == 0)
            return entry;
    struct entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        exit(2);
    entry->hash = hash;
    strcpy(entry->word, word);
    entry->next = bucket->chain;
    bucket->chain = entry;
    return entry;
}

static void *count_words(void *number)
{
    uint64_t state = 1 + (uint64_t)(size_t)number;
    char word[WORD_BYTES];

    for (size_t i = 0; i < operations; i++) {
        size_t length = spell(next_random(&state) % VOCABULARY, word);
        uint64_t hash = hash_of(word, length);
        struct bucket *bucket = &table[hash % BUCKETS];
        pthread_mutex_lock(&bucket->lock);
        find_or_add(bucket, hash, word)->count++;
        pthread_mutex_unlock(&bucket->lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        operations = strtoul(argv[1], NULL, 10);
    for (size_t i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&table[i].lock, NULL);

    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, count_words, (void *)i) != 0)
            return 2;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);

    uint64_t counted = 0, checksum = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct entry *entry = table[i].chain; entry; entry = entry->next) {
            counted += entry->count;
            checksum += entry->count * entry->hash;
        }
    printf("%lu %016lx\n", (unsigned long)counted, (unsigned long)checksum);
    return counted == THREADS * operations ? 0 : 1;
}
