//! The event vocabulary: everything an analyser, a policy or a plug-in can learn of an execution.
//!
//! An event is emitted *before* what it names takes effect, except where its name says otherwise
//! (`...End`, `...Acquired`, `Joined`): thesis 4.2 and 4.3 call these before- and
//! after-notifications. A `match` over [`EventKind`] should list every event, so that a new one
//! makes the compiler ask each analyser what it does.

use crate::ids::{Address, ModuleId, Place, StackId, ThreadId};
use serde::{Deserialize, Serialize};

/// One thing a thread did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the execution's total order, dense from 0. Consistent with each thread's own
    /// order and with every synchronisation between threads.
    pub order: u64,
    /// Who did it.
    pub thread: ThreadId,
    /// The instruction; for a hooked function, the place it was called from.
    pub place: Place,
    /// The call stack, where the observer asked for stacks.
    pub stack: StackId,
    /// What it was.
    pub kind: EventKind,
}

/// How an instruction touches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessKind {
    /// A plain read.
    Read,
    /// A plain write.
    Write,
    /// A read-modify-write that no other access can split (`lock` prefix, `xchg` with memory).
    AtomicUpdate,
    /// A read by a plain instruction that the debug information shows to be atomic.
    AtomicRead,
    /// A write by a plain instruction that the debug information shows to be atomic.
    AtomicWrite,
    /// A read by a small loop that does nothing but read until the value changes.
    SpinRead,
}

impl AccessKind {
    /// Can it change the memory?
    pub fn writes(self) -> bool {
        !matches!(self, AccessKind::Read | AccessKind::AtomicRead | AccessKind::SpinRead)
    }

    /// Can no other access come between its parts?
    pub fn is_atomic(self) -> bool {
        !matches!(self, AccessKind::Read | AccessKind::Write)
    }
}

/// The side of a lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LockMode {
    /// One owner: mutexes, spin locks, the write side of a read/write lock.
    Exclusive,
    /// Many owners: the read side of a read/write lock.
    Shared,
}

/// Through what one thread hands over to another, where it is no lock, condition or the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SyncObject {
    /// Whatever the program says lies there (annotations). Gone when the memory is.
    Address(Address),
    /// An open file, pipe, socket, event counter, message queue: whatever a descriptor stands for,
    /// both ends of it, numbered from 1 in the order of being met.
    Channel(u32),
    /// A queue at an address: each acquisition takes what one release has put, the oldest first.
    Queue(Address),
    /// A signal on its way to a handler or a wait: its number.
    Signal(u32),
    /// The functions to be called when the process ends.
    ProcessEnd,
}

/// What a thread asks not to be watched for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ignored {
    /// Its plain and atomic reads.
    Reads,
    /// Its plain and atomic writes.
    Writes,
    /// Its synchronisation.
    Synchronisation,
}

/// What happened. Synchronisation objects are identified by an address or handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// A thread is about to be made: what the creator did so far happens before the child's
    /// [`EventKind::ThreadStart`], what it does from here on does not. If the kernel refuses, the
    /// child never starts and its number stays unused.
    ThreadCreate {
        /// The number the new thread will have.
        child: ThreadId,
    },
    /// A thread began; `creator` is absent for the first. Ordered after the creator's
    /// [`EventKind::ThreadCreate`] of this thread, not after what the creator did since.
    ThreadStart {
        /// Who created it.
        creator: Option<ThreadId>,
        /// The kernel's thread id.
        os_id: u32,
    },
    /// A thread got a name (`pthread_setname_np`, `prctl`).
    ThreadName {
        /// The new name.
        name: String,
    },
    /// A thread is about to end.
    ThreadExit,
    /// `created` was made by this thread (after the creating call returned).
    ThreadCreated {
        /// The new thread; absent when the call succeeded but the thread had not been seen.
        created: Option<ThreadId>,
        /// The library's handle of it (`pthread_t`).
        handle: u64,
    },
    /// This thread waited for `joined` to end, and it has ended.
    ThreadJoined {
        /// The thread that ended, where the handle is known.
        joined: Option<ThreadId>,
        /// The library's handle.
        handle: u64,
    },
    /// Nobody will join the thread with this handle.
    ThreadDetached {
        /// The library's handle.
        handle: u64,
    },
    /// Cancellation of a thread was requested.
    ThreadCancelled {
        /// The library's handle.
        handle: u64,
    },

    /// An instruction touches memory.
    Access {
        /// How.
        kind: AccessKind,
        /// First byte.
        address: Address,
        /// Bytes touched, as the instruction touches them.
        size: u32,
    },
    /// A string instruction or a library function touches a stretch of memory.
    Range {
        /// `Read` or `Write`.
        kind: AccessKind,
        /// First byte.
        address: Address,
        /// Bytes touched; never zero.
        length: u64,
    },
    /// Memory came into being: `malloc` and its kin, `mmap`.
    Allocate {
        /// First byte.
        address: Address,
        /// Bytes asked for. Zero, also, of a block that a refused `realloc` leaves as it was: its
        /// [`EventKind::Free`] came before the refusal, and its size is known to who kept it.
        size: u64,
    },
    /// Memory ceased to be; emitted before the allocator can hand it to another thread.
    Free {
        /// First byte.
        address: Address,
        /// Bytes, where known (`munmap`); zero when only the allocator knows.
        size: u64,
    },

    /// A lock came into being.
    LockCreated {
        /// Which.
        lock: Address,
    },
    /// A lock ceased to be.
    LockDestroyed {
        /// Which.
        lock: Address,
    },
    /// A thread is about to ask for a lock.
    LockRequested {
        /// Which.
        lock: Address,
        /// Which side.
        mode: LockMode,
        /// It waits until it has it: neither a try nor with a time limit.
        waits: bool,
    },
    /// A lock was taken.
    LockAcquired {
        /// Which.
        lock: Address,
        /// Which side.
        mode: LockMode,
    },
    /// An attempt to take a lock ended without it (`trylock`, a time-out, an error). After its release by
    /// the same thread: the release was refused (`EPERM`), nothing has changed.
    LockFailed {
        /// Which.
        lock: Address,
        /// Which side.
        mode: LockMode,
    },
    /// A lock is about to be released. `mode` is absent where the call serves both sides.
    LockReleased {
        /// Which.
        lock: Address,
        /// Which side, where the function tells.
        mode: Option<LockMode>,
    },

    /// A thread is about to signal a condition.
    ConditionSignal {
        /// Which.
        condition: Address,
        /// All waiters, or one.
        all: bool,
    },
    /// A thread is about to wait, giving up `lock` while it does.
    ConditionWaitBegin {
        /// Which.
        condition: Address,
        /// The lock given up.
        lock: Address,
    },
    /// A wait ended, with `lock` held again.
    ConditionWaitEnd {
        /// Which.
        condition: Address,
        /// The lock held again.
        lock: Address,
        /// By a signal (or a spurious wake-up); otherwise by a time-out or an error.
        woken: bool,
    },

    /// A barrier came into being.
    BarrierCreated {
        /// Which.
        barrier: Address,
        /// How many threads it waits for.
        count: u64,
    },
    /// A thread is about to wait at a barrier.
    BarrierEnter {
        /// Which.
        barrier: Address,
    },
    /// A thread passed a barrier.
    BarrierLeave {
        /// Which.
        barrier: Address,
    },

    /// A semaphore came into being.
    SemaphoreCreated {
        /// Which.
        semaphore: Address,
        /// Its first value.
        value: u64,
    },
    /// A thread is about to post.
    SemaphorePost {
        /// Which.
        semaphore: Address,
    },
    /// A wait was granted.
    SemaphoreAcquired {
        /// Which.
        semaphore: Address,
    },

    /// A thread begins a one-time initialisation: it, and no other, runs the body.
    OnceBegin {
        /// Which.
        once: Address,
    },
    /// The body of a one-time initialisation is about to be declared done.
    OnceEnd {
        /// Which.
        once: Address,
        /// False when the body gave up (an exception) and another thread will try.
        done: bool,
    },
    /// A thread found the initialisation done, by itself or another thread.
    OncePassed {
        /// Which.
        once: Address,
    },

    /// A team of threads (OpenMP) is about to be put to work.
    TeamFork {
        /// Identifies the team.
        team: Address,
    },
    /// A thread begins its share of a team's work.
    TeamBodyBegin {
        /// Identifies the team.
        team: Address,
    },
    /// A thread ended its share of a team's work.
    TeamBodyEnd {
        /// Identifies the team.
        team: Address,
    },
    /// The whole team has ended its work.
    TeamJoin {
        /// Identifies the team.
        team: Address,
    },
    /// A deferred task is about to be handed over.
    TaskCreate {
        /// The function it will run.
        function: Address,
        /// Its data, as the library was given it.
        data: u64,
    },
    /// A task's function begins.
    TaskBegin {
        /// The function.
        function: Address,
        /// Its data, as the function was given it.
        data: u64,
    },
    /// A task's function ended.
    TaskEnd {
        /// The function.
        function: Address,
        /// Its data.
        data: u64,
    },
    /// A thread has waited for its child tasks.
    TaskWaited,

    /// What the thread did so far is about to come before whatever follows an
    /// [`EventKind::Acquire`] of the same object.
    Release {
        /// Through what.
        object: SyncObject,
    },
    /// See [`EventKind::Release`].
    Acquire {
        /// Through what.
        object: SyncObject,
    },
    /// A loop whose body waits for a condition was left, or passed over because the condition held:
    /// the signal may have come before anybody waited.
    ConditionLoopLeft {
        /// The condition waited for, where the code tells; zero where it does not.
        condition: Address,
    },
    /// Who takes this lock comes after who released it: it hands over, and does not only exclude.
    LockHandsOver {
        /// Which.
        lock: Address,
    },
    /// An atomic update, reported before it ran, has run: its thread comes after those who changed
    /// the memory in between. Made where a detector is fed.
    AtomicUpdated {
        /// First byte.
        address: Address,
        /// Bytes.
        size: u64,
    },
    /// This memory is as good as new: what was done to it before is over, although nobody gave it
    /// back.
    MemoryRenewed {
        /// First byte.
        address: Address,
        /// Bytes.
        size: u64,
    },
    /// The program says that races here are intended, as long as the memory lives.
    BenignRace {
        /// First byte.
        address: Address,
        /// Bytes.
        size: u64,
    },
    /// The thread asks not to be watched; calls nest.
    IgnoreBegin {
        /// In what.
        what: Ignored,
    },
    /// See [`EventKind::IgnoreBegin`].
    IgnoreEnd {
        /// In what.
        what: Ignored,
    },
    /// From here on nobody's accesses are to be judged, or all are again.
    DetectionSwitched {
        /// Are they?
        on: bool,
    },

    /// A hooked function was entered.
    FunctionEnter {
        /// Index in the execution's hook table.
        hook: u32,
        /// The arguments the hook names.
        arguments: Vec<u64>,
    },
    /// A hooked function returned, or was left by `longjmp`, an exception or the thread's end.
    FunctionExit {
        /// Index in the execution's hook table.
        hook: u32,
        /// Its value; absent when it was left otherwise.
        result: Option<u64>,
    },

    /// A transaction began.
    TransactionStart,
    /// A transaction is about to commit.
    TransactionCommit,
    /// A transaction was given up and will be retried or left.
    TransactionAbort,
    /// A transactional read or write.
    TransactionAccess {
        /// `Read` or `Write`.
        kind: AccessKind,
        /// First byte.
        address: Address,
        /// Bytes.
        size: u64,
    },

    /// A module was mapped.
    ModuleLoad {
        /// Its number from now on.
        module: ModuleId,
        /// Where it came from.
        path: String,
        /// Its load address.
        base: Address,
        /// One past its last byte.
        end: Address,
    },
    /// A module was unmapped.
    ModuleUnload {
        /// Which.
        module: ModuleId,
    },
    /// A thread is about to wait in the kernel while the word at `address` is `expected`.
    FutexWait {
        /// The word.
        address: Address,
        /// The value it waits on.
        expected: u32,
    },
    /// The wait returned.
    FutexWaitEnd {
        /// The word.
        address: Address,
        /// The kernel's answer.
        result: i64,
    },
    /// A thread is about to wake up to `count` waiters.
    FutexWake {
        /// The word.
        address: Address,
        /// How many.
        count: u32,
    },
    /// A signal is about to be delivered to the thread.
    SignalDelivered {
        /// Its number.
        signal: u32,
    },
    /// Bytes are about to be written to a descriptor.
    Output {
        /// The descriptor.
        descriptor: i32,
        /// How many bytes.
        length: u64,
    },
    /// A child process was made.
    ProcessForked {
        /// Its process id.
        child: u32,
    },
    /// The process is about to become another program.
    ProcessExec {
        /// The path given.
        path: String,
    },
    /// The process ended in order: every thread's events are complete.
    ProcessEnd {
        /// The exit status given to the kernel, where there was one.
        status: Option<i32>,
    },
}

/// The families a person selects with `--only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// Accesses, ranges, allocation.
    Memory,
    /// Locks, conditions, barriers, semaphores, once, teams, tasks, transactions, futexes.
    Sync,
    /// Start, name, exit, join.
    Thread,
    /// Hooked functions as such.
    Function,
    /// What the program wrote.
    Output,
    /// Modules, signals, children.
    Process,
}

impl EventKind {
    /// The event's name in machine-readable output and in counts.
    #[inline]
    pub fn name(&self) -> &'static str {
        use EventKind::*;
        match self {
            ThreadCreate { .. } => "thread-create",
            ThreadStart { .. } => "thread-start",
            ThreadName { .. } => "thread-name",
            ThreadExit => "thread-exit",
            ThreadCreated { .. } => "thread-created",
            ThreadJoined { .. } => "thread-joined",
            ThreadDetached { .. } => "thread-detached",
            ThreadCancelled { .. } => "thread-cancelled",
            Access { kind, .. } => match kind {
                AccessKind::Read => "read",
                AccessKind::Write => "write",
                AccessKind::AtomicUpdate => "atomic-update",
                AccessKind::AtomicRead => "atomic-read",
                AccessKind::AtomicWrite => "atomic-write",
                AccessKind::SpinRead => "spin-read",
            },
            Range { kind, .. } if kind.writes() => "write-range",
            Range { .. } => "read-range",
            Allocate { .. } => "allocate",
            Free { .. } => "free",
            LockCreated { .. } => "lock-created",
            LockDestroyed { .. } => "lock-destroyed",
            LockRequested { .. } => "lock-requested",
            LockAcquired { .. } => "lock-acquired",
            LockFailed { .. } => "lock-failed",
            LockReleased { .. } => "lock-released",
            ConditionSignal { .. } => "condition-signal",
            ConditionWaitBegin { .. } => "condition-wait-begin",
            ConditionWaitEnd { .. } => "condition-wait-end",
            BarrierCreated { .. } => "barrier-created",
            BarrierEnter { .. } => "barrier-enter",
            BarrierLeave { .. } => "barrier-leave",
            SemaphoreCreated { .. } => "semaphore-created",
            SemaphorePost { .. } => "semaphore-post",
            SemaphoreAcquired { .. } => "semaphore-acquired",
            OnceBegin { .. } => "once-begin",
            OnceEnd { .. } => "once-end",
            OncePassed { .. } => "once-passed",
            TeamFork { .. } => "team-fork",
            TeamBodyBegin { .. } => "team-body-begin",
            TeamBodyEnd { .. } => "team-body-end",
            TeamJoin { .. } => "team-join",
            TaskCreate { .. } => "task-create",
            TaskBegin { .. } => "task-begin",
            TaskEnd { .. } => "task-end",
            TaskWaited => "task-waited",
            Release { .. } => "release",
            Acquire { .. } => "acquire",
            ConditionLoopLeft { .. } => "condition-loop-left",
            LockHandsOver { .. } => "lock-hands-over",
            AtomicUpdated { .. } => "atomic-updated",
            MemoryRenewed { .. } => "memory-renewed",
            BenignRace { .. } => "benign-race",
            IgnoreBegin { .. } => "ignore-begin",
            IgnoreEnd { .. } => "ignore-end",
            DetectionSwitched { .. } => "detection-switched",
            FunctionEnter { .. } => "function-enter",
            FunctionExit { .. } => "function-exit",
            TransactionStart => "transaction-start",
            TransactionCommit => "transaction-commit",
            TransactionAbort => "transaction-abort",
            TransactionAccess { .. } => "transaction-access",
            ModuleLoad { .. } => "module-load",
            ModuleUnload { .. } => "module-unload",
            FutexWait { .. } => "futex-wait",
            FutexWaitEnd { .. } => "futex-wait-end",
            FutexWake { .. } => "futex-wake",
            SignalDelivered { .. } => "signal-delivered",
            Output { .. } => "output",
            ProcessForked { .. } => "process-forked",
            ProcessExec { .. } => "process-exec",
            ProcessEnd { .. } => "process-end",
        }
    }

    /// The family the event belongs to.
    #[inline]
    pub fn family(&self) -> Family {
        use EventKind::*;
        match self {
            ThreadCreate { .. }
            | ThreadStart { .. }
            | ThreadName { .. }
            | ThreadExit
            | ThreadCreated { .. }
            | ThreadJoined { .. }
            | ThreadDetached { .. }
            | ThreadCancelled { .. } => Family::Thread,
            Access { .. }
            | Range { .. }
            | Allocate { .. }
            | Free { .. }
            | AtomicUpdated { .. }
            | MemoryRenewed { .. }
            | BenignRace { .. } => Family::Memory,
            LockCreated { .. }
            | LockDestroyed { .. }
            | LockRequested { .. }
            | LockAcquired { .. }
            | LockFailed { .. }
            | LockReleased { .. }
            | ConditionSignal { .. }
            | ConditionWaitBegin { .. }
            | ConditionWaitEnd { .. }
            | BarrierCreated { .. }
            | BarrierEnter { .. }
            | BarrierLeave { .. }
            | SemaphoreCreated { .. }
            | SemaphorePost { .. }
            | SemaphoreAcquired { .. }
            | OnceBegin { .. }
            | OnceEnd { .. }
            | OncePassed { .. }
            | TeamFork { .. }
            | TeamBodyBegin { .. }
            | TeamBodyEnd { .. }
            | TeamJoin { .. }
            | TaskCreate { .. }
            | TaskBegin { .. }
            | TaskEnd { .. }
            | TaskWaited
            | TransactionStart
            | TransactionCommit
            | TransactionAbort
            | TransactionAccess { .. }
            | Release { .. }
            | Acquire { .. }
            | ConditionLoopLeft { .. }
            | LockHandsOver { .. }
            | IgnoreBegin { .. }
            | IgnoreEnd { .. }
            | DetectionSwitched { .. }
            | FutexWait { .. }
            | FutexWaitEnd { .. }
            | FutexWake { .. } => Family::Sync,
            FunctionEnter { .. } | FunctionExit { .. } => Family::Function,
            Output { .. } => Family::Output,
            ModuleLoad { .. }
            | ModuleUnload { .. }
            | SignalDelivered { .. }
            | ProcessForked { .. }
            | ProcessExec { .. }
            | ProcessEnd { .. } => Family::Process,
        }
    }
}
