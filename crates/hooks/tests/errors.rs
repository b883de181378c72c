//! Every way a hook file can be wrong, and the one sentence it gets.

use raddle_hooks::parse;

const LIBRARY: &str = "[library]\nname = \"mine\"\n";

/// The message for a file that begins with a good `[library]` of two lines.
#[track_caller]
fn fails(rest: &str, expected: &str) {
    fails_whole(&format!("{LIBRARY}{rest}"), expected);
}

#[track_caller]
fn fails_whole(text: &str, expected: &str) {
    match parse(text, "my.toml") {
        Ok(file) => panic!("accepted: {file:?}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn what_is_no_toml() {
    fails_whole(
        "[library\nname = 1",
        "my.toml:1:9: this is not TOML: unclosed table, expected `]`; \
         expected a [library] table and [[hook]] tables",
    );
    fails_whole(
        "pthread_mutex_lock 1 addr()\n",
        "my.toml:1:20: this is not TOML: key with no value, expected `=`; \
         expected a [library] table and [[hook]] tables",
    );
    fails(
        "name = \"again\"",
        "my.toml:3:1: this is not TOML: duplicate key; expected a [library] table and [[hook]] tables",
    );
}

#[test]
fn the_library() {
    fails_whole("", "my.toml:1:1: there is no [library]; expected [library] with a name");
    fails_whole(
        "[library]\nabout = \"x\"",
        "my.toml:1:1: [library] has no name; expected name = \"…\"",
    );
    fails_whole(
        "[library]\nname = \"x\"\nruntimes = []",
        "my.toml:3:1: unknown key \"runtimes\"; expected \"runtime\"",
    );
    fails("[[hooks]]\n", "my.toml:3:3: unknown table \"hooks\"; expected \"hook\"");
    fails("[hook]\n", "my.toml:3:1: hook is a table; expected [[hook]] tables");
}

#[test]
fn an_unknown_role() {
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.aquire\"\nobject = \"arg1\"",
        "my.toml:5:8: unknown role \"lock.aquire\"; expected \"lock.acquire\"",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"?\"",
        "my.toml:5:8: unknown role \"?\"; expected function, lock.create, lock.destroy, lock.acquire, \
         lock.try, lock.release, lock.taken, lock.given, lock.hands-over, condition.wait, \
         condition.wrapper, condition.signal, condition.broadcast, barrier.create, barrier.wait, \
         barrier.enter, barrier.leave, semaphore.create, semaphore.post, semaphore.wait, \
         once.call, once.begin, once.end, once.abort, thread.create, thread.join, thread.detach, \
         thread.exit, thread.pause, thread.cancel, thread.name, wait, post, memory.allocate, \
         memory.reallocate, memory.free, memory.range, memory.print, memory.scan, memory.renew, memory.benign, \
         order.release, order.acquire, order.put, order.get, ignore.reads, ignore.writes, \
         ignore.synchronisation, detection, exit.register, exit.run, team.fork, team.begin, \
         team.join, team.barrier, task.create, task.wait, transaction.start, transaction.commit, \
         transaction.abort, transaction.read or transaction.write",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]",
        "my.toml:3:1: this hook has no role; expected role = \"lock.acquire\" or another role",
    );
}

#[test]
fn an_operand_that_is_missing() {
    const PRINTS: &str = "[[hook]]\nfunctions = [\"f\"]\nrole = \"memory.print\"\nformat = \"arg2\"\nreads = \
                          [{ at = \"arg1\", len = 1 }]\n";
    fails(
        PRINTS,
        "my.toml:5:8: role \"memory.print\" has no values; expected values = \"arg3\", or list = \"arg3\" for a va_list",
    );
    fails(
        &format!("{PRINTS}values = \"arg3\"\nlist = \"arg4\""),
        "my.toml:5:8: role \"memory.print\" has both values and list; expected values = \"arg3\", or list = \"arg3\" for \
         a va_list",
    );
    fails(
        &format!("{PRINTS}values = \"arg3 + 8\""),
        "my.toml:8:10: values begin with an argument of the call; expected values = \"arg3\" or another argument",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"",
        "my.toml:5:8: role \"lock.acquire\" has no object; \
         expected object = \"arg1\" or another expression",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"condition.wait\"\nobject = \"arg1\"",
        "my.toml:5:8: role \"condition.wait\" has no lock; \
         expected lock = \"arg1\" or another expression",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"memory.range\"",
        "my.toml:5:8: role \"memory.range\" has neither reads nor writes; \
         expected reads or writes = [{ at = \"…\", len = \"…\" }]",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"memory.range\"\nreads = [{ at = \"arg1\" }]",
        "my.toml:6:10: a stretch of reads has no len; expected { at = \"…\", len = \"…\" }",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"once.call\"\nobject = \"arg1\"",
        "my.toml:5:8: role \"once.call\" has no callback; \
         expected callback = \"arg2\" or another expression",
    );
}

#[test]
fn an_operand_that_the_role_does_not_take() {
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\nobject = \"arg1\"\nhandle = \"arg1\"",
        "my.toml:7:1: role \"lock.acquire\" takes no handle; expected object or mode",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"team.join\"\ndata = \"arg1\"",
        "my.toml:6:1: role \"team.join\" takes no data; expected nothing",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\nobjct = \"arg1\"",
        "my.toml:6:1: unknown key \"objct\"; expected \"object\"",
    );
    fails(
        "[[hook]]\nfunction = [\"f\"]\nrole = \"lock.acquire\"",
        "my.toml:4:1: unknown key \"function\"; expected \"functions\"",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"function\"\ntimeout = 3",
        "my.toml:6:1: unknown key \"timeout\"; expected address, arguments, callback, count, data, depends, \
         exclusive, format, functions, handle, inlined, list, lock, mode, name, object, old, on, opaque, reads, role, \
         size, start, success, value, values or writes",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"memory.range\"\nreads = [{ at = 1, length = 2 }]",
        "my.toml:6:20: unknown key \"length\"; expected \"len\"",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\nobject = \"arg1\"\nmode = \"read\"",
        "my.toml:7:8: unknown mode \"read\"; expected exclusive or shared",
    );
}

#[test]
fn an_expression_that_is_none() {
    let hook = "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\n";
    fails(
        &format!("{hook}object = \"arg1 +\""),
        "my.toml:6:17: the expression ends too early; \
         expected an operand such as arg1, *arg1, result or a number",
    );
    fails(
        &format!("{hook}object = \"*(arg1 + ofset)\""),
        "my.toml:6:20: unknown word \"ofset\"; expected arg1, arg2, arg3, arg4, arg5, arg6, result, \
         team, after, min, bits, if, strlen, strnlen or common",
    );
    fails(
        &format!("{hook}object = 'arg1 & 3'"),
        "my.toml:6:16: the expression goes on with \"&\"; expected an operator (+, -, *) or the end",
    );
    // Behind an escape the column inside the string is not known.
    fails(
        &format!("{hook}object = \"arg1\\tx\""),
        "my.toml:6:10: the expression goes on with \"x\"; expected an operator (+, -, *) or the end",
    );
}

#[test]
fn an_argument_that_does_not_exist() {
    let hook = "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\n";
    fails(
        &format!("{hook}object = \"arg0\""),
        "my.toml:6:11: there is no arg0; expected arg1 to arg6, those passed in registers",
    );
    fails(
        &format!("{hook}object = \"8 + arg7\""),
        "my.toml:6:15: there is no arg7; expected arg1 to arg6, those passed in registers",
    );
}

#[test]
fn an_operand_that_comes_too_late() {
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.release\"\nobject = \"after(*arg1)\"",
        "my.toml:6:10: object is needed before the function runs; \
         expected an expression without result and after()",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"function\"\narguments = [\"arg1\", \"result\"]",
        "my.toml:6:22: arguments is needed before the function runs; \
         expected an expression without result and after()",
    );
}

#[test]
fn a_function_with_two_meanings() {
    fails(
        "[[hook]]\nfunctions = [\"f\", \"g\"]\nrole = \"function\"\n\
         [[hook]]\nfunctions = [\n  \"h\",\n  \"g\",\n]\nrole = \"thread.exit\"\n",
        "my.toml:9:3: \"g\" is hooked already at line 4; expected each function once in a file",
    );
    fails(
        "[[hook]]\nfunctions = [\"my_*\"]\nrole = \"function\"\n\
         [[hook]]\nfunctions = [\"my_lock\"]\nrole = \"thread.exit\"\n",
        "my.toml:7:14: \"my_lock\" can mean the same function as \"my_*\" at line 4; \
         expected each function once in a file",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\", \"f\"]\nrole = \"function\"\n",
        "my.toml:4:19: \"f\" is hooked already at line 4; expected each function once in a file",
    );
}

#[test]
fn an_unknown_success() {
    let hook = "[[hook]]\nfunctions = [\"f\"]\nrole = \"function\"\n";
    fails(
        &format!("{hook}success = \"non-zero\""),
        "my.toml:6:11: unknown success \"non-zero\"; expected \"nonzero\"",
    );
    fails(
        &format!("{hook}success = \"sometimes\""),
        "my.toml:6:11: unknown success \"sometimes\"; \
         expected always, zero, nonzero, true, notnull, equals N or zero or N",
    );
    fails(
        &format!("{hook}success = \"equals one\""),
        "my.toml:6:11: \"equals one\" compares with no number of 32 bits; \
         expected a number as in \"equals -1\"",
    );
}

#[test]
fn a_hook_that_names_nothing() {
    fails(
        "[[hook]]\nrole = \"function\"\n",
        "my.toml:3:1: this hook names no function; expected names in functions or inlined",
    );
    fails(
        "[[hook]]\nfunctions = []\ninlined = []\nrole = \"function\"\n",
        "my.toml:3:1: this hook names no function; expected names in functions or inlined",
    );
    fails(
        "[[hook]]\nfunctions = [\"*\"]\nrole = \"function\"\n",
        "my.toml:4:14: \"*\" names no function; expected a name, in which * may stand for more",
    );
    fails(
        "[[hook]]\ninlined = [\"f\"]\nrole = \"barrier.wait\"\n",
        "my.toml:5:8: role \"barrier.wait\" cannot be told from inlined code; expected functions \
         instead, or the role function, lock.acquire, lock.try, lock.release, condition.signal \
         or condition.broadcast",
    );
}

#[test]
fn a_value_of_the_wrong_type() {
    fails(
        "[[hook]]\nfunctions = \"f\"\nrole = \"function\"\n",
        "my.toml:4:13: functions is a string; expected an array of strings",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\", 3]\nrole = \"function\"\n",
        "my.toml:4:19: functions is a whole number; expected an array of strings",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = 3\n",
        "my.toml:5:8: role is a whole number; expected a string",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"function\"\nopaque = \"yes\"",
        "my.toml:6:10: opaque is a string; expected true or false",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\nobject = [\"arg1\"]",
        "my.toml:6:10: object is an array; expected an expression in quotes, or a number",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.acquire\"\nobject = -1",
        "my.toml:6:10: object is -1; expected a number from 0 to 2^64 - 1",
    );
    fails(
        "[[hook]]\nfunctions = [\"f\"]\nrole = \"memory.range\"\nreads = [\"arg1\"]",
        "my.toml:6:10: reads is a string; expected tables { at = \"…\", len = \"…\" }",
    );
}

/// Whatever stands in a file, there is an answer.
#[test]
fn no_text_is_too_strange() {
    let good = "[library]\nname = \"é\"\n[[hook]]\nfunctions = [\"f\"]\nrole = \"memory.range\"\n\
                reads = [{ at = \"if(result, *arg1 + 1, 2)\", len = 0x10 }]\nsuccess = \"equals 3\"\n";
    assert!(parse(good, "my.toml").is_ok());
    let characters: Vec<char> = good.chars().collect();
    for cut in 0..characters.len() {
        let _ = parse(&characters[..cut].iter().collect::<String>(), "my.toml");
        for replacement in ['"', '[', '(', '\n', '\0', 'é', '*', '0'] {
            let mut text = characters.clone();
            text[cut] = replacement;
            if let Err(error) = parse(&text.iter().collect::<String>(), "my.toml") {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}
