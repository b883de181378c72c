// Appending asks for the other's length, then for so many characters: each call is locked, the two are not.
// fails: abort
#include "stagger.h"
#include "start.h"
#include <string.h>

static struct buffer {
    pthread_mutex_t lock;
    int length;
    char text[32];
} source = {PTHREAD_MUTEX_INITIALIZER, 9, "some text"}, target = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int length_of(struct buffer *buffer)
{
    pthread_mutex_lock(&buffer->lock);
    int length = buffer->length;
    pthread_mutex_unlock(&buffer->lock);
    return length;
}

static void copy_out(struct buffer *buffer, int length, char *to)
{
    pthread_mutex_lock(&buffer->lock);
    if (length > buffer->length)
        abort(); // out of bounds
    memcpy(to, buffer->text, length);
    pthread_mutex_unlock(&buffer->lock);
}

static void *append(void *unused)
{
    int length = length_of(&source);
    copy_out(&source, length, target.text);
    return unused;
}

static void *erase(void *unused)
{
    work(LATE);
    pthread_mutex_lock(&source.lock);
    source.length = 0;
    pthread_mutex_unlock(&source.lock);
    return unused;
}

int main(void)
{
    both(append, erase);
    return 0;
}
