// Leaving hooked functions by longjmp and by pthread_exit: each that was skipped is left without a
// result, and what comes after is seen again.
//
// watch: function sync memory
// options: --place *
// hooks: left.toml
// build: gcc -O1 -g -pthread

#include <pthread.h>
#include <setjmp.h>

static int inside, lock, after;

__attribute__((noipa)) int risky(int jump, jmp_buf *back)
{
    if (jump)
        longjmp(*back, 1);
    return 5;
}

__attribute__((noipa)) int middle(int jump, jmp_buf *back)
{
    return risky(jump, back) + 1;
}

// A lock whose acquisition may be broken off; opaque.
__attribute__((noipa)) int take(int *object, int jump, jmp_buf *back)
{
    *(volatile int *)object = 1;
    if (jump)
        longjmp(*back, 1);
    return 0;
}

__attribute__((noipa)) int give(int *object)
{
    *(volatile int *)object = 0;
    return 0;
}

__attribute__((noipa)) int visit(void (*each)(int, jmp_buf *), int jump, jmp_buf *back)
{
    *(volatile int *)&inside = jump;
    each(jump, back);
    *(volatile int *)&inside = jump;
    return 0;
}

__attribute__((noipa)) static void visited(int jump, jmp_buf *back);
static void *other(void *argument);

int main(void)
{
    jmp_buf back;
    middle(0, &back);                          // expect: function-enter middle
                                        // expect: function-enter risky 0; function-exit risky = 5
                                        // expect: function-exit middle = 6
    if (!setjmp(back))
        middle(1, &back);                      // expect: function-enter middle
                                        // expect: function-enter risky 1
                                        // expect: function-exit risky = nothing; function-exit middle = nothing
    *(volatile int *)&after = 1;        // expect: write 4 after

    take(&lock, 0, &back);                     // expect: function-enter take; lock-requested lock; lock-acquired lock; function-exit take = 0
    give(&lock);                        // expect: function-enter give; lock-released lock; function-exit give = 0
    if (!setjmp(back))
        take(&lock, 1, &back);                 // expect: function-enter take; lock-requested lock
                                        // expect: lock-failed lock; function-exit take = nothing
    give(&lock);                        // expect: function-enter give; lock-released lock; function-exit give = 0

    visit(visited, 0, &back);                  // expect: function-enter visit
                                        // expect: read 4 inside; function-exit visit = 0
    if (!setjmp(back))
        visit(visited, 1, &back);              // expect: function-enter visit
                                        // expect: read 4 inside
                                        // expect: function-exit visit = nothing
    *(volatile int *)&after = 2;        // expect: write 4 after

    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL); // expect: function-enter pthread_create; function-exit pthread_create = 0
    pthread_join(thread, NULL);         // expect: function-enter pthread_join; function-exit pthread_join = 0
    return after != 3;                  // expect: read 4 after
}

static void visited(int jump, jmp_buf *back)
{
    (void)*(volatile int *)&inside;
    if (jump == 1)
        longjmp(*back, 1);
    if (jump == 2)
        pthread_exit(NULL);
}
// expect T2: function-enter visit; read 4 inside; function-enter pthread_exit
// expect T2: function-exit visit = nothing; write 4 after

static void clean_up(void *argument)
{
    *(volatile int *)argument = 3;
}

static void *other(void *argument)
{
    pthread_cleanup_push(clean_up, &after);
    visit(visited, 2, NULL);
    pthread_cleanup_pop(0);
    return argument;
}
