// Transactions by gcc's libitm: what is read and written in one, and its beginning and end. (By a
// method that looks at every access: left to itself, libitm lets a single thread run plain code.)
//
// watch: sync memory
// options: --place *
// environment: ITM_DEFAULT_METHOD=gl_wt
// build: gcc -O2 -g -fgnu-tm

static int balance[4];
static long total;

int main(void)
{
    __transaction_atomic {              // expect: transaction-start
        balance[1] += 5;                // expect: transaction-access read 4 balance[1]; transaction-access write 4 balance[1]
        total = balance[1];             // expect: transaction-access write 8 total
    }
    // expect: transaction-commit
    return total != 5;                  // expect: read 8 total
}
