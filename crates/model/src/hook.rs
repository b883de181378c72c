//! What a function means: the content of a hook file, checked and ready for use.
//!
//! A [`Hook`] names functions and gives them one [`Role`]; the role's operands are small
//! expressions over the call's arguments and result. An expression is evaluated when the function
//! is entered, unless it needs the result ([`Expr::needs_return`]): then when it has returned.

use crate::event::{Ignored, LockMode};
use serde::{Deserialize, Serialize};

/// One line of a hook file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// The library the hook file describes ("pthread").
    pub library: String,
    /// Linker names this hook applies to, exported or in `.symtab`. `*` stands for any run of
    /// characters. A demangled name (C++, Rust) is written as such and matched without its
    /// hash suffix and generic arguments.
    pub functions: Vec<String>,
    /// Functions (demangled, as above) of which *inlined instances* found in debug information are
    /// meant: the hook then applies to the atomic instructions inside them, and the object is the
    /// memory that instruction touches.
    pub inlined: Vec<String>,
    /// What the function does.
    pub role: Role,
    /// When it counts as having succeeded.
    pub success: Success,
    /// Accesses and hooked functions inside are the library's own business and are no events.
    pub opaque: bool,
    /// A function the library calls back while this one runs: its body is the program's again.
    pub callback: Option<Expr>,
    /// Arguments shown in function events.
    pub arguments: Vec<Expr>,
}

impl Hook {
    /// What reports call it: its first name.
    pub fn name(&self) -> &str {
        self.functions.first().or(self.inlined.first()).map_or("?", String::as_str)
    }
}

/// When a call counts as successful, judged by its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Success {
    /// Whenever it returns.
    Always,
    /// The result, as a 32-bit integer, is zero.
    Zero,
    /// The result, as a 32-bit integer, is not zero.
    NonZero,
    /// The low byte of the result is not zero (a C++ or Rust `bool`).
    True,
    /// The result, as a pointer, is not null.
    NotNull,
    /// The result, as a 32-bit integer, equals this.
    Equals(i32),
    /// The result, as a 32-bit integer, is zero or this.
    ZeroOr(i32),
}

impl Success {
    /// Did a call with this result succeed?
    #[inline]
    pub fn holds(self, result: u64) -> bool {
        match self {
            Success::Always => true,
            Success::Zero => result as u32 == 0,
            Success::NonZero => result as u32 != 0,
            Success::True => result as u8 != 0,
            Success::NotNull => result != 0,
            Success::Equals(n) => result as i32 == n,
            Success::ZeroOr(n) => result as i32 == 0 || result as i32 == n,
        }
    }
}

/// A value computed from a call: `arg1`, `result`, `*arg1`, `strlen(arg2)+1`, `min(a, b)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expr {
    /// The n-th integer argument, from 1 to 6.
    Arg(u8),
    /// The result.
    Result,
    /// A number.
    Number(u64),
    /// The implicit object: the OpenMP team the thread works in.
    Team,
    /// The eight bytes at an address, read when the function is entered.
    Deref(Box<Expr>),
    /// Evaluate when the function has returned.
    After(Box<Expr>),
    /// Sum, wrapping.
    Add(Box<Expr>, Box<Expr>),
    /// Difference, wrapping.
    Sub(Box<Expr>, Box<Expr>),
    /// Product, wrapping.
    Mul(Box<Expr>, Box<Expr>),
    /// The smaller.
    Min(Box<Expr>, Box<Expr>),
    /// The bits that both have.
    Bits(Box<Expr>, Box<Expr>),
    /// The third where the first is zero, else the second.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Bytes before the first NUL.
    Strlen(Box<Expr>),
    /// Bytes before the first NUL, at most the second.
    Strnlen(Box<Expr>, Box<Expr>),
    /// How many leading bytes two strings (NUL ends both) have in common, at most the third.
    Common(Box<Expr>, Box<Expr>, Box<Expr>),
}

impl Expr {
    /// Must this wait until the function has returned?
    #[inline]
    pub fn needs_return(&self) -> bool {
        match self {
            Expr::Result | Expr::After(_) => true,
            Expr::Arg(_) | Expr::Number(_) | Expr::Team => false,
            Expr::Deref(a) | Expr::Strlen(a) => a.needs_return(),
            Expr::Add(a, b)
            | Expr::Sub(a, b)
            | Expr::Mul(a, b)
            | Expr::Min(a, b)
            | Expr::Bits(a, b)
            | Expr::Strnlen(a, b) => a.needs_return() || b.needs_return(),
            Expr::If(a, b, c) | Expr::Common(a, b, c) => {
                a.needs_return() || b.needs_return() || c.needs_return()
            }
        }
    }
}

/// A stretch of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub at: Expr,
    /// How many bytes.
    pub len: Expr,
}

/// Where the arguments are that a format speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variadic {
    /// They are the call's own, from the n-th on.
    From(u8),
    /// They are in the `va_list` at this address.
    List(Expr),
}

/// How a call that makes a task is told what the task depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dependences {
    /// As libgomp's `GOMP_task`: the eighth argument, if the seventh has bit 3. Numbers, then addresses;
    /// those that are written come first.
    Gomp,
    /// As libomp's `__kmpc_omp_task_with_deps`: so many (fourth argument) records of address, length and
    /// flags, at the fifth.
    Kmp,
}

/// What a hooked function does. `object` is whatever identifies the thing synchronised on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Only its entry and exit are of interest.
    Function,

    /// `lock.create`
    LockCreate { object: Expr },
    /// `lock.destroy`
    LockDestroy { object: Expr },
    /// `lock.acquire`, `lock.try`: the lock is held when the call has succeeded. The second does not
    /// wait for it, or not for ever.
    LockAcquire { object: Expr, mode: LockMode, waits: bool },
    /// `lock.release`: the lock is given up when the call is entered.
    LockRelease { object: Expr, mode: Option<LockMode> },

    /// `lock.taken`: the program says that it holds the lock, exclusively if the second is not zero.
    LockTaken { object: Expr, exclusive: Expr },
    /// `lock.given`: the program says that it is about to give up that side.
    LockGiven { object: Expr, exclusive: Expr },
    /// `lock.hands-over`: who takes this lock comes after who released it.
    LockHandsOver { object: Expr },

    /// `condition.wait`
    ConditionWait { object: Expr, lock: Expr },
    /// `condition.wrapper`: waits for a condition on its caller's behalf, through another function.
    ConditionWrapper,
    /// `condition.signal`
    ConditionSignal { object: Expr },
    /// `condition.broadcast`
    ConditionBroadcast { object: Expr },

    /// `barrier.create`
    BarrierCreate { object: Expr, count: Expr },
    /// `barrier.wait`
    BarrierWait { object: Expr },

    /// `barrier.enter`: the program says that it is about to wait.
    BarrierEnter { object: Expr },
    /// `barrier.leave`: the program says that it has waited.
    BarrierLeave { object: Expr },

    /// `semaphore.create`
    SemaphoreCreate { object: Expr, value: Expr },
    /// `semaphore.post`
    SemaphorePost { object: Expr },
    /// `semaphore.wait`
    SemaphoreWait { object: Expr },

    /// `once.call`: the hook's callback, if it runs, is the body.
    OnceCall { object: Expr },
    /// `once.begin`: on success the caller runs the body, otherwise it passed.
    OnceBegin { object: Expr },
    /// `once.end`
    OnceEnd { object: Expr },
    /// `once.abort`
    OnceAbort { object: Expr },

    /// `thread.create`: `handle` names the thread, `start` is the function it runs.
    ThreadCreate { handle: Expr, start: Expr },
    /// `thread.join`
    ThreadJoin { handle: Expr },
    /// `thread.detach`
    ThreadDetach { handle: Expr },
    /// `thread.exit`
    ThreadExit,
    /// `thread.pause`: yields or sleeps, and does nothing else.
    ThreadPause,
    /// `thread.cancel`
    ThreadCancel { handle: Expr },
    /// `thread.name`: `name` is the address of a C string.
    ThreadName { handle: Expr, name: Expr },

    /// `wait`: its meaning follows from how the object was created (thesis 4.4): acquire a lock,
    /// wait for a semaphore, join a thread.
    Wait { object: Expr },
    /// `post`: likewise, release a lock or post a semaphore.
    Post { object: Expr },

    /// `memory.allocate`
    Allocate { address: Expr, size: Expr },
    /// `memory.reallocate`
    Reallocate { address: Expr, old: Expr, size: Expr },
    /// `memory.free`
    Free { address: Expr },
    /// `memory.range`: the function reads and writes these stretches.
    Range { reads: Vec<Span>, writes: Vec<Span> },

    /// `memory.print`: the function touches these stretches, and reads the strings that a format asks for.
    Print { format: Expr, values: Variadic, reads: Vec<Span>, writes: Vec<Span> },
    /// `memory.scan`: the function touches these stretches, and writes what a format asks for; its result is how many
    /// conversions were done. The arguments from this one on, counted from one, are what it speaks of.
    Scan { format: Expr, first: u8, reads: Vec<Span>, writes: Vec<Span> },

    /// `memory.renew`: what was done to this memory before is over.
    Renew { address: Expr, size: Expr },
    /// `memory.benign`: races here are intended.
    Benign { address: Expr, size: Expr },

    /// `order.release`: what the thread did so far comes before an `order.acquire` of the object.
    OrderRelease { object: Expr },
    /// `order.acquire`: takes effect when the call has succeeded.
    OrderAcquire { object: Expr },
    /// `order.put`: like a release, but to a queue.
    OrderPut { object: Expr },
    /// `order.get`: like an acquire, of the oldest that was put.
    OrderGet { object: Expr },
    /// `ignore.reads`, `ignore.writes`, `ignore.synchronisation`: begins if `on` is not zero.
    Ignore { what: Ignored, on: Expr },
    /// `detection`: on, or off for all threads.
    Detection { on: Expr },
    /// `exit.register`: a function is to run when the process ends.
    ExitRegister,
    /// `exit.run`: the process ends, and those functions run.
    ExitRun,

    /// `team.fork`: the hook's callback is the body, run by the whole team; returns when all are done
    /// unless a `team.join` function exists for it.
    TeamFork { data: Expr },
    /// `team.begin`: starts a team whose body the caller runs itself (`GOMP_parallel_start`).
    TeamBegin { data: Expr },
    /// `team.join`
    TeamJoin,
    /// `team.barrier`: the team's implicit barrier.
    TeamBarrier,
    /// `task.create`: the hook's callback is the task's function.
    TaskCreate { data: Expr, depends: Option<Dependences> },
    /// `task.wait`
    TaskWait,

    /// `transaction.start`
    TransactionStart,
    /// `transaction.commit`
    TransactionCommit,
    /// `transaction.abort`
    TransactionAbort,
    /// `transaction.read`
    TransactionRead { address: Expr, size: Expr },
    /// `transaction.write`
    TransactionWrite { address: Expr, size: Expr },
}
