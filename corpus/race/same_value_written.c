// Both threads write the same value, "so it does not matter": still a race.
#include "start.h"

int initialised;

static void *user(void *unused)
{
    initialised = 1; // race: initialised
    return unused;
}

int main(void)
{
    both(user, user);
    printf("%d\n", initialised);
    return 0;
}
