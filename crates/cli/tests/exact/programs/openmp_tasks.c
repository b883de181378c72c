// OpenMP by gcc: critical sections, and tasks, which are begun by whoever waits.
//
// A team of one: the order is the program's.
//
// watch: sync
// build: gcc -O1 -g -fopenmp

static int count;

// expect: team-fork team1; team-body-begin team1
// expect: lock-requested .gomp_critical_user_named; lock-acquired .gomp_critical_user_named
// expect: lock-released .gomp_critical_user_named
// expect: task-create ?; task-begin ?; task-end ?; task-waited
// expect: barrier-enter team1; barrier-leave team1
// expect: team-body-end team1; team-join team1

int main(void)
{
#pragma omp parallel num_threads(1)
    {
#pragma omp critical(named)
        count++;
#pragma omp task
        count++;
#pragma omp taskwait
#pragma omp barrier
    }
    return count != 2;
}
