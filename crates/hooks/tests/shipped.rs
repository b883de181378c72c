//! The hook files that come with Raddle: all are right, and a few of each are looked at closely.

use raddle_hooks::{merge, parse, shipped};
use raddle_model::hook::Span;
use raddle_model::{Expr, Hook, LockMode, Role, Success};
use std::sync::LazyLock;

fn hook(function: &str) -> Hook {
    static HOOKS: LazyLock<Vec<Hook>> =
        LazyLock::new(|| merge(shipped()).expect("shipped files merge").hooks);
    let found = HOOKS.iter().find(|hook| hook.functions.iter().any(|name| name == function));
    found.unwrap_or_else(|| panic!("nobody hooks {function}")).clone()
}

fn expression(text: &str) -> Expr {
    let file = format!(
        "[library]\nname = \"x\"\n[[hook]]\nfunctions = [\"f\"]\nrole = \"lock.create\"\nobject = \"{text}\""
    );
    match &parse(&file, "x").expect(text).hooks[0].role {
        Role::LockCreate { object } => object.clone(),
        other => panic!("{other:?}"),
    }
}

fn span(at: &str, len: &str) -> Span {
    Span { at: expression(at), len: expression(len) }
}

#[test]
fn all_are_there() {
    let libraries: Vec<(String, usize)> =
        shipped().into_iter().map(|file| (file.library, file.hooks.len())).collect();
    let names: Vec<&str> = libraries.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "pthread",
            "c11",
            "libc-memory",
            "allocators",
            "libc-strings",
            "libc-formats",
            "libc-services",
            "cxx",
            "annotations",
            "openmp",
            "libitm",
            "rust",
            "parking_lot"
        ]
    );
    assert!(libraries.iter().all(|(_, hooks)| *hooks > 3), "{libraries:?}");
}

#[test]
fn each_function_has_one_meaning_in_all_of_them() {
    let apart: usize = shipped().iter().map(|file| file.hooks.len()).sum();
    let set = merge(shipped()).unwrap();
    assert_eq!(set.hooks.len(), apart, "one shipped file overrides another");
    let count = |hooks: &[Hook]| hooks.iter().map(|h| h.functions.len() + h.inlined.len()).sum();
    let names: usize = shipped().iter().map(|file| -> usize { count(&file.hooks) }).sum();
    assert_eq!(names, count(&set.hooks), "one shipped file overrides another");
}

#[test]
fn the_digest_of_the_shipped_files_is_stable() {
    assert_eq!(merge(shipped()).unwrap().digest(), merge(shipped()).unwrap().digest());
}

#[test]
fn a_users_file_wins() {
    let users = parse(
        "[library]\nname = \"mine\"\n[[hook]]\nfunctions = [\"malloc\"]\nrole = \"function\"\n",
        "mine.toml",
    )
    .unwrap();
    let mut files = shipped();
    files.push(users);
    let set = merge(files).unwrap();
    let names = |library: &str| -> Vec<String> {
        let of_library = set.hooks.iter().filter(|hook| hook.library == library);
        of_library.flat_map(|hook| hook.functions.clone()).collect()
    };
    assert_eq!(names("mine"), ["malloc"]);
    assert!(names("libc-memory").contains(&"__libc_malloc".to_owned()));
    assert!(!names("libc-memory").contains(&"malloc".to_owned()));
}

#[test]
fn threads() {
    let lock = hook("pthread_mutex_lock");
    assert_eq!(lock.library, "pthread");
    assert_eq!(lock.name(), "pthread_mutex_lock");
    assert_eq!(
        lock.role,
        Role::LockAcquire { object: Expr::Arg(1), mode: LockMode::Exclusive, waits: true }
    );
    assert_eq!((lock.success, lock.opaque, lock.callback), (Success::ZeroOr(130), true, None));

    let read = hook("pthread_rwlock_clockrdlock");
    assert_eq!(
        read.role,
        Role::LockAcquire { object: Expr::Arg(1), mode: LockMode::Shared, waits: false }
    );
    let unlock = hook("pthread_rwlock_unlock");
    assert_eq!(unlock.role, Role::LockRelease { object: Expr::Arg(1), mode: None });

    let create = hook("pthread_create");
    let handle = Expr::After(Box::new(Expr::Deref(Box::new(Expr::Arg(1)))));
    assert_eq!(create.role, Role::ThreadCreate { handle, start: Expr::Arg(3) });

    let once = hook("pthread_once");
    assert_eq!(once.role, Role::OnceCall { object: Expr::Arg(1) });
    assert_eq!(once.callback, Some(Expr::Arg(2)));

    // The program's clean-up runs inside.
    assert!(!hook("pthread_exit").opaque);
    assert_eq!(
        hook("thrd_create").role,
        Role::ThreadCreate { handle: expression("after(*arg1)"), start: Expr::Arg(2) }
    );
}

#[test]
fn helpers_with_another_meaning_are_left_alone() {
    let set = merge(shipped()).unwrap();
    for helper in [
        "__pthread_mutex_unlock_usercnt",
        "__pthread_mutex_cond_lock",
        "__pthread_mutex_clocklock_common",
        "__pthread_once_slow",
        "__pthread_clockjoin_ex",
        "pthread_spin_init",
        "thrd_exit",
        "__memset_chk_ifunc",
        "strlen_ifunc",
        "__strcasecmp_l_nonascii",
        "__strcpy_small",
        "index",
    ] {
        let hooked = set.hooks.iter().flat_map(|hook| &hook.functions).find(|pattern| {
            let (head, tail) = pattern.split_once('*').unwrap_or((pattern, ""));
            match pattern.contains('*') {
                true => helper.starts_with(head) && helper[head.len()..].ends_with(tail),
                false => helper == **pattern,
            }
        });
        assert_eq!(hooked, None, "{helper}");
    }
}

#[test]
fn memory() {
    assert_eq!(
        hook("calloc").role,
        Role::Allocate { address: Expr::Result, size: expression("arg1 * arg2") }
    );
    assert_eq!(
        hook("posix_memalign").role,
        Role::Allocate { address: expression("after(*arg1)"), size: Expr::Arg(3) }
    );
    assert_eq!(hook("_ZdlPvm").role, Role::Free { address: Expr::Arg(1) });
    assert_eq!(hook("_ZnamSt11align_val_tRKSt9nothrow_t").success, Success::NotNull);
    assert_eq!(hook("sdallocx").role, Role::Free { address: Expr::Arg(1) });
    assert_eq!(hook("mi_malloc_aligned").role, hook("_rjem_mallocx").role);
}

#[test]
fn strings() {
    let Role::Range { reads, writes } = hook("strncat").role else { panic!() };
    assert_eq!(
        reads,
        [span("arg1", "strlen(arg1) + 1"), span("arg2", "min(strnlen(arg2, arg3) + 1, arg3)"),]
    );
    assert_eq!(writes, [span("arg1 + strlen(arg1)", "strnlen(arg2, arg3) + 1")]);
    let Role::Range { reads, writes } = hook("memchr").role else { panic!() };
    assert_eq!(reads, [span("arg1", "if(result, result - arg1 + 1, arg3)")]);
    assert!(writes.is_empty());
    // The same code in glibc: one hook, or it would be told twice.
    assert_eq!(hook("memcpy"), hook("memmove"));
    assert_eq!(hook("memcpy"), hook("__memmove_avx*"));
}

#[test]
fn openmp() {
    let fork = hook("__kmpc_fork_call");
    assert_eq!((fork.callback, fork.opaque), (Some(Expr::Arg(3)), true));
    let task = hook("__kmpc_omp_task");
    assert_eq!(task.callback, Some(expression("*(arg3 + 8)")));
    assert_eq!(hook("GOMP_ordered_end").role, Role::SemaphorePost { object: Expr::Team });
    assert_eq!(hook("omp_test_nest_lock").success, Success::NonZero);
    assert_eq!(hook("GOMP_loop_*_next").role, Role::Function);
    assert!(hook("GOMP_loop_*_next").opaque);
}

#[test]
fn transactions() {
    let size = |name: &str| match hook(name).role {
        Role::TransactionRead { size, .. } | Role::TransactionWrite { size, .. } => size,
        other => panic!("{other:?}"),
    };
    for (name, bytes) in [("_ITM_RU1", 1), ("_ITM_RfWCE", 32), ("_ITM_WaWE", 16), ("_ITM_WM64", 8)]
    {
        assert_eq!(size(name), Expr::Number(bytes), "{name}");
    }
    assert_eq!(size("_ITM_memsetW"), Expr::Arg(3));
}

#[test]
fn inlined_locks() {
    let hooks = merge(shipped()).unwrap().hooks;
    let with = |name: &str| {
        let found: Vec<&Hook> = hooks
            .iter()
            .filter(|hook| hook.inlined.iter().any(|inlined| inlined == name))
            .collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0]
    };
    let lock = with("std::sys::sync::mutex::futex::Mutex::lock");
    assert_eq!(lock.functions, ["std::sys::sync::mutex::futex::Mutex::lock_contended"]);
    let unlock = with("std::sys::sync::mutex::futex::Mutex::unlock");
    assert!(unlock.functions.is_empty());
    assert_eq!(unlock.name(), "std::sys::sync::mutex::futex::Mutex::unlock");
    assert!(matches!(unlock.role, Role::LockRelease { mode: Some(LockMode::Exclusive), .. }));
    let shared = with("parking_lot::raw_rwlock::RawRwLock::lock_shared");
    assert!(matches!(shared.role, Role::LockAcquire { mode: LockMode::Shared, .. }));
}
