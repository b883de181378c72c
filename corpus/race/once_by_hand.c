// "Once" by an unprotected flag: both may do it, and the flag itself races.
#include "start.h"

int done;
int value;

static void *user(void *unused)
{
    if (!done) { // race: done
        value = 7; // race: value
        done = 1; // race: done
    }
    return value == 7 ? unused : NULL; // race: value
}

int main(void)
{
    both(user, user);
    printf("%d\n", value);
    return 0;
}
