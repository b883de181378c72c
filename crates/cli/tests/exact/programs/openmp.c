// OpenMP by gcc: a team of two threads, its barrier, a critical section, tasks.
//
// watch: sync
// build: gcc -O2 -g -fopenmp

#include <omp.h>

static int count, total;
static omp_lock_t lock;

int main(void)
{
    omp_init_lock(&lock);               // expect: lock-created lock._x[0]
// expect: team-fork team1; team-body-begin team1
// expect: barrier-enter team1; barrier-leave team1
// expect: lock-requested lock._x[0]; lock-acquired lock._x[0]; lock-released lock._x[0]
// expect: team-body-end team1; team-join team1
// expect T2: team-body-begin team1
// expect T2: barrier-enter team1; barrier-leave team1
// expect T2: lock-requested lock._x[0]; lock-acquired lock._x[0]; lock-released lock._x[0]
// expect T2: team-body-end team1
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
        omp_set_lock(&lock);
        count++;
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);            // expect: lock-destroyed lock._x[0]

// Outside a team a task is run at once, by who makes it.
    return count != 2;
}
