// Function-local statics: the guard is a one-time initialisation. One whose initialiser throws is
// given up and tried again by the next caller.
//
// watch: sync
// build: g++ -O0 -g
// build: g++ -O2 -g
// build: g++ -O2 -g -static

struct Value {
    explicit Value(int attempt)
    {
        if (attempt == 0)
            throw attempt;
        value = attempt;
    }
    int value;
};

static int attempts;

static int get()
{
    static Value once(attempts++);  // expect: once-begin guard_variable_for_get()::once
                                    // expect: once-end guard_variable_for_get()::once undone
                                    // expect: once-begin guard_variable_for_get()::once
                                    // expect: once-end guard_variable_for_get()::once done
    return once.value;
}

int main()
{
    try {
        get();
        return 1;
    } catch (int) {
    }
    return get() + get() != 2;
}
