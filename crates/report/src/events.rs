//! An event stream, one event a line: [`TextLines`] for people, [`JsonLines`] for programs.

mod json;
pub(crate) mod text;

pub use json::JsonLines;
pub use text::TextLines;

use raddle_model::{Address, EventKind, Ignored, SyncObject};

/// The address an event is about: the memory touched, the lock, the condition, the barrier …
pub fn subject(kind: &EventKind) -> Option<Address> {
    use EventKind::*;
    match kind {
        Access { address, .. }
        | Range { address, .. }
        | Allocate { address, .. }
        | Free { address, .. }
        | TransactionAccess { address, .. }
        | FutexWait { address, .. }
        | FutexWaitEnd { address, .. }
        | FutexWake { address, .. } => Some(*address),
        LockCreated { lock }
        | LockDestroyed { lock }
        | LockRequested { lock, .. }
        | LockAcquired { lock, .. }
        | LockFailed { lock, .. }
        | LockReleased { lock, .. }
        | LockHandsOver { lock } => Some(*lock),
        AtomicUpdated { address, .. }
        | MemoryRenewed { address, .. }
        | BenignRace { address, .. }
        | Release { object: SyncObject::Address(address) }
        | Release { object: SyncObject::Queue(address) }
        | Acquire { object: SyncObject::Address(address) }
        | Acquire { object: SyncObject::Queue(address) } => Some(*address),
        ConditionLoopLeft { condition } => Some(*condition).filter(|c| c.0 != 0),
        ConditionSignal { condition, .. }
        | ConditionWaitBegin { condition, .. }
        | ConditionWaitEnd { condition, .. } => Some(*condition),
        BarrierCreated { barrier, .. } | BarrierEnter { barrier } | BarrierLeave { barrier } => {
            Some(*barrier)
        }
        SemaphoreCreated { semaphore, .. }
        | SemaphorePost { semaphore }
        | SemaphoreAcquired { semaphore } => Some(*semaphore),
        OnceBegin { once } | OnceEnd { once, .. } | OncePassed { once } => Some(*once),
        TeamFork { team } | TeamBodyBegin { team } | TeamBodyEnd { team } | TeamJoin { team } => {
            Some(*team)
        }
        TaskCreate { function, .. } | TaskBegin { function, .. } | TaskEnd { function, .. } => {
            Some(*function)
        }
        ModuleLoad { base, .. } => Some(*base),
        ThreadCreate { .. }
        | ThreadStart { .. }
        | ThreadName { .. }
        | ThreadExit
        | ThreadCreated { .. }
        | ThreadJoined { .. }
        | ThreadDetached { .. }
        | ThreadCancelled { .. }
        | TaskWaited
        | Release { .. }
        | Acquire { .. }
        | IgnoreBegin { .. }
        | IgnoreEnd { .. }
        | DetectionSwitched { .. }
        | FunctionEnter { .. }
        | FunctionExit { .. }
        | TransactionStart
        | TransactionCommit
        | TransactionAbort
        | ModuleUnload { .. }
        | SignalDelivered { .. }
        | Output { .. }
        | ProcessForked { .. }
        | ProcessExec { .. }
        | ProcessEnd { .. } => None,
    }
}

/// What a thread asks not to be watched.
fn ignored(what: Ignored) -> &'static str {
    match what {
        Ignored::Reads => "reads",
        Ignored::Writes => "writes",
        Ignored::Synchronisation => "synchronisation",
    }
}

/// The name of a hook, by its index in the execution's table.
fn hook_name(hooks: &[String], hook: u32) -> &str {
    hooks.get(hook as usize).map_or("?", String::as_str)
}

#[cfg(test)]
mod tests {
    //! One event of every kind, rendered both ways: a change of wording is a reviewed diff.

    use super::*;
    use crate::paint::Paint;
    use crate::world::World;
    use crate::world::tests::{Made, event, load};
    use raddle_model::{AccessKind, Event, LockMode, ModuleId, Place, StackId, ThreadId};

    const HOOKS: [&str; 1] = ["pthread_mutex_lock"];

    /// A story in which every event happens once.
    pub(super) fn story() -> Vec<Event> {
        use EventKind::*;
        let global = Address(0x40_1010);
        let heap = Address(0x9000);
        let lock = Address(0x40_1040);
        let access = |kind, address, size| Access { kind, address, size };
        let kinds = vec![
            load(1, "/w/bank", 0x40_0000, 0x40_9000),
            ThreadStart { creator: None, os_id: 100 },
            ThreadCreate { child: ThreadId(2) },
            ThreadStart { creator: Some(ThreadId(1)), os_id: 101 },
            ThreadCreated { created: Some(ThreadId(2)), handle: 0x7f01 },
            ThreadName { name: "teller".into() },
            access(AccessKind::Read, global, 4),
            access(AccessKind::Write, global, 8),
            access(AccessKind::AtomicUpdate, global, 4),
            access(AccessKind::AtomicRead, global, 4),
            access(AccessKind::AtomicWrite, Address(0x7ffe_0000), 4),
            Allocate { address: heap, size: 64 },
            Range { kind: AccessKind::Write, address: heap, length: 64 },
            Range { kind: AccessKind::Read, address: Address(heap.0 + 8), length: 16 },
            Free { address: heap, size: 0 },
            LockCreated { lock },
            LockRequested { lock, mode: LockMode::Exclusive, waits: true },
            LockAcquired { lock, mode: LockMode::Exclusive },
            LockReleased { lock, mode: None },
            LockAcquired { lock, mode: LockMode::Shared },
            LockReleased { lock, mode: Some(LockMode::Shared) },
            LockFailed { lock, mode: LockMode::Exclusive },
            LockDestroyed { lock },
            ConditionSignal { condition: global, all: false },
            ConditionSignal { condition: global, all: true },
            ConditionWaitBegin { condition: global, lock },
            ConditionWaitEnd { condition: global, lock, woken: true },
            ConditionWaitEnd { condition: global, lock, woken: false },
            BarrierCreated { barrier: global, count: 3 },
            BarrierEnter { barrier: global },
            BarrierLeave { barrier: global },
            SemaphoreCreated { semaphore: global, value: 2 },
            SemaphorePost { semaphore: global },
            SemaphoreAcquired { semaphore: global },
            OnceBegin { once: global },
            OnceEnd { once: global, done: true },
            OnceEnd { once: global, done: false },
            OncePassed { once: global },
            TeamFork { team: global },
            TeamBodyBegin { team: global },
            TeamBodyEnd { team: global },
            TeamJoin { team: global },
            TaskCreate { function: global, data: 0xd },
            TaskBegin { function: global, data: 0xd },
            TaskEnd { function: global, data: 0xd },
            TaskWaited,
            access(AccessKind::SpinRead, global, 4),
            Release { object: SyncObject::Address(global) },
            Release { object: SyncObject::Queue(global) },
            Acquire { object: SyncObject::Channel(3) },
            Release { object: SyncObject::Signal(10) },
            Acquire { object: SyncObject::ProcessEnd },
            ConditionLoopLeft { condition: global },
            ConditionLoopLeft { condition: Address(0) },
            LockHandsOver { lock },
            MemoryRenewed { address: global, size: 16 },
            BenignRace { address: global, size: 4 },
            IgnoreBegin { what: Ignored::Reads },
            IgnoreEnd { what: Ignored::Synchronisation },
            DetectionSwitched { on: false },
            FunctionEnter { hook: 0, arguments: vec![0x401040, 1] },
            FunctionExit { hook: 0, result: Some(0) },
            FunctionExit { hook: 9, result: None },
            TransactionStart,
            TransactionAccess { kind: AccessKind::Write, address: global, size: 8 },
            TransactionCommit,
            TransactionAbort,
            FutexWait { address: global, expected: 2 },
            FutexWaitEnd { address: global, result: -11 },
            FutexWake { address: global, count: 1 },
            SignalDelivered { signal: 10 },
            Output { descriptor: 1, length: 12 },
            ProcessForked { child: 4242 },
            ProcessExec { path: "/bin/ls".into() },
            ThreadDetached { handle: 0x7f01 },
            ThreadCancelled { handle: 0x7f01 },
            ThreadExit,
            ThreadJoined { joined: Some(ThreadId(2)), handle: 0x7f01 },
            ThreadJoined { joined: None, handle: 0x7f02 },
            ModuleUnload { module: ModuleId(1) },
            ProcessEnd { status: Some(3) },
        ];
        let event_of = |(i, kind): (usize, EventKind)| event(i as u64, 1, 30, kind);
        kinds.into_iter().enumerate().map(event_of).collect()
    }

    fn hooks() -> Vec<String> {
        HOOKS.map(String::from).to_vec()
    }

    fn told(mut line: impl FnMut(&Event, &mut World, &mut Vec<u8>), story: &[Event]) -> String {
        let mut world = World::default();
        let mut out = Vec::new();
        for event in story {
            world.begin(event);
            line(event, &mut world, &mut out);
            world.end(event);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_event_as_text() {
        let mut lines = TextLines::new(Paint::Plain, "/w".into(), hooks());
        let text = told(
            |event, world, out| lines.write(out, None, event, world, &mut Made).unwrap(),
            &story(),
        );
        insta::assert_snapshot!(text, @r"
        T1   module load           /w/bank               bank.c:30 in f30
        T1   thread start                                bank.c:30 in f30
        T1   thread create T2                            bank.c:30 in f30
        T1   thread start by T1                          bank.c:30 in f30
        T1   thread created T2                           bank.c:30 in f30
        T1 teller  thread name           teller                bank.c:30 in f30
        T1 teller  read 4                v1010                 bank.c:30 in f30
        T1 teller  write 8               v1010                 bank.c:30 in f30
        T1 teller  atomic update 4       v1010                 bank.c:30 in f30
        T1 teller  atomic read 4         v1010                 bank.c:30 in f30
        T1 teller  atomic write 4        0x7ffe0000            bank.c:30 in f30
        T1 teller  allocate 64           0x9000                bank.c:30 in f30
        T1 teller  write range 64        block of 64 bytes from bank.c:30  bank.c:30 in f30
        T1 teller  read range 16         block of 64 bytes from bank.c:30, byte 8  bank.c:30 in f30
        T1 teller  free                  block of 64 bytes from bank.c:30      bank.c:30 in f30
        T1 teller  lock created          v1040                                 bank.c:30 in f30
        T1 teller  lock requested        v1040                                 bank.c:30 in f30
        T1 teller  lock acquired         v1040                                 bank.c:30 in f30
        T1 teller  lock released         v1040                                 bank.c:30 in f30
        T1 teller  lock acquired shared  v1040                                 bank.c:30 in f30
        T1 teller  lock released shared  v1040                                 bank.c:30 in f30
        T1 teller  lock failed           v1040                                 bank.c:30 in f30
        T1 teller  lock destroyed        v1040                                 bank.c:30 in f30
        T1 teller  condition signal      v1010                                 bank.c:30 in f30
        T1 teller  condition signal all  v1010                                 bank.c:30 in f30
        T1 teller  condition wait begin  v1010                                 bank.c:30 in f30
        T1 teller  condition wait end    v1010                                 bank.c:30 in f30
        T1 teller  condition wait end unwoken  v1010                                 bank.c:30 in f30
        T1 teller  barrier created for 3       v1010                                 bank.c:30 in f30
        T1 teller  barrier enter               v1010                                 bank.c:30 in f30
        T1 teller  barrier leave               v1010                                 bank.c:30 in f30
        T1 teller  semaphore created at 2      v1010                                 bank.c:30 in f30
        T1 teller  semaphore post              v1010                                 bank.c:30 in f30
        T1 teller  semaphore acquired          v1010                                 bank.c:30 in f30
        T1 teller  once begin                  v1010                                 bank.c:30 in f30
        T1 teller  once end                    v1010                                 bank.c:30 in f30
        T1 teller  once end undone             v1010                                 bank.c:30 in f30
        T1 teller  once passed                 v1010                                 bank.c:30 in f30
        T1 teller  team fork                   v1010                                 bank.c:30 in f30
        T1 teller  team body begin             v1010                                 bank.c:30 in f30
        T1 teller  team body end               v1010                                 bank.c:30 in f30
        T1 teller  team join                   v1010                                 bank.c:30 in f30
        T1 teller  task create (0xd)           v1010                                 bank.c:30 in f30
        T1 teller  task begin (0xd)            v1010                                 bank.c:30 in f30
        T1 teller  task end (0xd)              v1010                                 bank.c:30 in f30
        T1 teller  task waited                                                       bank.c:30 in f30
        T1 teller  spin read 4                 v1010                                 bank.c:30 in f30
        T1 teller  release                     v1010                                 bank.c:30 in f30
        T1 teller  release queue               v1010                                 bank.c:30 in f30
        T1 teller  acquire channel 3                                                 bank.c:30 in f30
        T1 teller  release signal 10                                                 bank.c:30 in f30
        T1 teller  acquire process end                                               bank.c:30 in f30
        T1 teller  condition loop left         v1010                                 bank.c:30 in f30
        T1 teller  condition loop left                                               bank.c:30 in f30
        T1 teller  lock hands over             v1040                                 bank.c:30 in f30
        T1 teller  memory renewed 16           v1010                                 bank.c:30 in f30
        T1 teller  benign race 4               v1010                                 bank.c:30 in f30
        T1 teller  ignore begin reads                                                bank.c:30 in f30
        T1 teller  ignore end synchronisation                                        bank.c:30 in f30
        T1 teller  detection switched off                                            bank.c:30 in f30
        T1 teller  function enter              pthread_mutex_lock(0x401040, 0x1)     bank.c:30 in f30
        T1 teller  function exit               pthread_mutex_lock = 0x0              bank.c:30 in f30
        T1 teller  function exit               ? by a jump                           bank.c:30 in f30
        T1 teller  transaction start                                                 bank.c:30 in f30
        T1 teller  transaction write 8         v1010                                 bank.c:30 in f30
        T1 teller  transaction commit                                                bank.c:30 in f30
        T1 teller  transaction abort                                                 bank.c:30 in f30
        T1 teller  futex wait while 2          v1010                                 bank.c:30 in f30
        T1 teller  futex wait end = -11        v1010                                 bank.c:30 in f30
        T1 teller  futex wake 1                v1010                                 bank.c:30 in f30
        T1 teller  signal delivered 10                                               bank.c:30 in f30
        T1 teller  output 12 to 1                                                    bank.c:30 in f30
        T1 teller  process forked 4242                                               bank.c:30 in f30
        T1 teller  process exec                /bin/ls                               bank.c:30 in f30
        T1 teller  thread detached 0x7f01                                            bank.c:30 in f30
        T1 teller  thread cancelled 0x7f01                                           bank.c:30 in f30
        T1 teller  thread exit                                                       bank.c:30 in f30
        T1 teller  thread joined T2                                                  bank.c:30 in f30
        T1 teller  thread joined 0x7f02                                              bank.c:30 in f30
        T1 teller  module unload               /w/bank                               bank.c:30 in f30
        T1 teller  process end 3                                                     bank.c:30 in f30
        ");
    }

    #[test]
    fn every_event_as_json() {
        let lines = JsonLines::new(hooks());
        let mut story = story();
        // Without a module, the place of every line is short.
        story.iter_mut().for_each(|event| event.place.module = ModuleId::NONE);
        let text =
            told(|event, world, out| lines.write(out, 7, event, world, &mut Made).unwrap(), &story);
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            for key in ["order", "process", "thread", "event", "family", "place"] {
                assert!(value.get(key).is_some(), "{key} in {line}");
            }
        }
        insta::assert_snapshot!(text, @r#"
        {"order":0,"process":7,"thread":1,"event":"module-load","family":"process","address":"0x400000","module":1,"path":"/w/bank","end":"0x409000","place":{"offset":"0x1e"}}
        {"order":1,"process":7,"thread":1,"event":"thread-start","family":"thread","creator":null,"os_id":100,"place":{"offset":"0x1e"}}
        {"order":2,"process":7,"thread":1,"event":"thread-create","family":"thread","child":2,"place":{"offset":"0x1e"}}
        {"order":3,"process":7,"thread":1,"event":"thread-start","family":"thread","creator":1,"os_id":101,"place":{"offset":"0x1e"}}
        {"order":4,"process":7,"thread":1,"event":"thread-created","family":"thread","created":2,"handle":"0x7f01","place":{"offset":"0x1e"}}
        {"order":5,"process":7,"thread":1,"thread_name":"teller","event":"thread-name","family":"thread","name":"teller","place":{"offset":"0x1e"}}
        {"order":6,"process":7,"thread":1,"thread_name":"teller","event":"read","family":"memory","address":"0x401010","size":4,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":7,"process":7,"thread":1,"thread_name":"teller","event":"write","family":"memory","address":"0x401010","size":8,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":8,"process":7,"thread":1,"thread_name":"teller","event":"atomic-update","family":"memory","address":"0x401010","size":4,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":9,"process":7,"thread":1,"thread_name":"teller","event":"atomic-read","family":"memory","address":"0x401010","size":4,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":10,"process":7,"thread":1,"thread_name":"teller","event":"atomic-write","family":"memory","address":"0x7ffe0000","size":4,"object":{"kind":"unknown"},"place":{"offset":"0x1e"}}
        {"order":11,"process":7,"thread":1,"thread_name":"teller","event":"allocate","family":"memory","address":"0x9000","size":64,"place":{"offset":"0x1e"}}
        {"order":12,"process":7,"thread":1,"thread_name":"teller","event":"write-range","family":"memory","address":"0x9000","size":64,"object":{"kind":"block","start":"0x9000","size":64,"offset":"0x0","allocated_at":{"offset":"0x1e"}},"place":{"offset":"0x1e"}}
        {"order":13,"process":7,"thread":1,"thread_name":"teller","event":"read-range","family":"memory","address":"0x9008","size":16,"object":{"kind":"block","start":"0x9000","size":64,"offset":"0x8","allocated_at":{"offset":"0x1e"}},"place":{"offset":"0x1e"}}
        {"order":14,"process":7,"thread":1,"thread_name":"teller","event":"free","family":"memory","address":"0x9000","object":{"kind":"block","start":"0x9000","size":64,"offset":"0x0","allocated_at":{"offset":"0x1e"}},"place":{"offset":"0x1e"}}
        {"order":15,"process":7,"thread":1,"thread_name":"teller","event":"lock-created","family":"sync","address":"0x401040","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":16,"process":7,"thread":1,"thread_name":"teller","event":"lock-requested","family":"sync","address":"0x401040","mode":"exclusive","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":17,"process":7,"thread":1,"thread_name":"teller","event":"lock-acquired","family":"sync","address":"0x401040","mode":"exclusive","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":18,"process":7,"thread":1,"thread_name":"teller","event":"lock-released","family":"sync","address":"0x401040","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":19,"process":7,"thread":1,"thread_name":"teller","event":"lock-acquired","family":"sync","address":"0x401040","mode":"shared","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":20,"process":7,"thread":1,"thread_name":"teller","event":"lock-released","family":"sync","address":"0x401040","mode":"shared","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":21,"process":7,"thread":1,"thread_name":"teller","event":"lock-failed","family":"sync","address":"0x401040","mode":"exclusive","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":22,"process":7,"thread":1,"thread_name":"teller","event":"lock-destroyed","family":"sync","address":"0x401040","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":23,"process":7,"thread":1,"thread_name":"teller","event":"condition-signal","family":"sync","address":"0x401010","all":false,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":24,"process":7,"thread":1,"thread_name":"teller","event":"condition-signal","family":"sync","address":"0x401010","all":true,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":25,"process":7,"thread":1,"thread_name":"teller","event":"condition-wait-begin","family":"sync","address":"0x401010","lock":"0x401040","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":26,"process":7,"thread":1,"thread_name":"teller","event":"condition-wait-end","family":"sync","address":"0x401010","lock":"0x401040","woken":true,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":27,"process":7,"thread":1,"thread_name":"teller","event":"condition-wait-end","family":"sync","address":"0x401010","lock":"0x401040","woken":false,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":28,"process":7,"thread":1,"thread_name":"teller","event":"barrier-created","family":"sync","address":"0x401010","count":3,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":29,"process":7,"thread":1,"thread_name":"teller","event":"barrier-enter","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":30,"process":7,"thread":1,"thread_name":"teller","event":"barrier-leave","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":31,"process":7,"thread":1,"thread_name":"teller","event":"semaphore-created","family":"sync","address":"0x401010","value":2,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":32,"process":7,"thread":1,"thread_name":"teller","event":"semaphore-post","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":33,"process":7,"thread":1,"thread_name":"teller","event":"semaphore-acquired","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":34,"process":7,"thread":1,"thread_name":"teller","event":"once-begin","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":35,"process":7,"thread":1,"thread_name":"teller","event":"once-end","family":"sync","address":"0x401010","done":true,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":36,"process":7,"thread":1,"thread_name":"teller","event":"once-end","family":"sync","address":"0x401010","done":false,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":37,"process":7,"thread":1,"thread_name":"teller","event":"once-passed","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":38,"process":7,"thread":1,"thread_name":"teller","event":"team-fork","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":39,"process":7,"thread":1,"thread_name":"teller","event":"team-body-begin","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":40,"process":7,"thread":1,"thread_name":"teller","event":"team-body-end","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":41,"process":7,"thread":1,"thread_name":"teller","event":"team-join","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":42,"process":7,"thread":1,"thread_name":"teller","event":"task-create","family":"sync","address":"0x401010","data":"0xd","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":43,"process":7,"thread":1,"thread_name":"teller","event":"task-begin","family":"sync","address":"0x401010","data":"0xd","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":44,"process":7,"thread":1,"thread_name":"teller","event":"task-end","family":"sync","address":"0x401010","data":"0xd","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":45,"process":7,"thread":1,"thread_name":"teller","event":"task-waited","family":"sync","place":{"offset":"0x1e"}}
        {"order":46,"process":7,"thread":1,"thread_name":"teller","event":"spin-read","family":"memory","address":"0x401010","size":4,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":47,"process":7,"thread":1,"thread_name":"teller","event":"release","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":48,"process":7,"thread":1,"thread_name":"teller","event":"release","family":"sync","address":"0x401010","queue":true,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":49,"process":7,"thread":1,"thread_name":"teller","event":"acquire","family":"sync","channel":3,"place":{"offset":"0x1e"}}
        {"order":50,"process":7,"thread":1,"thread_name":"teller","event":"release","family":"sync","signal":10,"place":{"offset":"0x1e"}}
        {"order":51,"process":7,"thread":1,"thread_name":"teller","event":"acquire","family":"sync","process_end":true,"place":{"offset":"0x1e"}}
        {"order":52,"process":7,"thread":1,"thread_name":"teller","event":"condition-loop-left","family":"sync","address":"0x401010","object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":53,"process":7,"thread":1,"thread_name":"teller","event":"condition-loop-left","family":"sync","place":{"offset":"0x1e"}}
        {"order":54,"process":7,"thread":1,"thread_name":"teller","event":"lock-hands-over","family":"sync","address":"0x401040","object":{"kind":"variable","name":"v1040","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":55,"process":7,"thread":1,"thread_name":"teller","event":"memory-renewed","family":"memory","address":"0x401010","size":16,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":56,"process":7,"thread":1,"thread_name":"teller","event":"benign-race","family":"memory","address":"0x401010","size":4,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":57,"process":7,"thread":1,"thread_name":"teller","event":"ignore-begin","family":"sync","what":"reads","place":{"offset":"0x1e"}}
        {"order":58,"process":7,"thread":1,"thread_name":"teller","event":"ignore-end","family":"sync","what":"synchronisation","place":{"offset":"0x1e"}}
        {"order":59,"process":7,"thread":1,"thread_name":"teller","event":"detection-switched","family":"sync","on":false,"place":{"offset":"0x1e"}}
        {"order":60,"process":7,"thread":1,"thread_name":"teller","event":"function-enter","family":"function","function":"pthread_mutex_lock","arguments":["0x401040","0x1"],"place":{"offset":"0x1e"}}
        {"order":61,"process":7,"thread":1,"thread_name":"teller","event":"function-exit","family":"function","function":"pthread_mutex_lock","result":"0x0","place":{"offset":"0x1e"}}
        {"order":62,"process":7,"thread":1,"thread_name":"teller","event":"function-exit","family":"function","function":"?","result":null,"place":{"offset":"0x1e"}}
        {"order":63,"process":7,"thread":1,"thread_name":"teller","event":"transaction-start","family":"sync","place":{"offset":"0x1e"}}
        {"order":64,"process":7,"thread":1,"thread_name":"teller","event":"transaction-access","family":"sync","address":"0x401010","access":"write","size":8,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":65,"process":7,"thread":1,"thread_name":"teller","event":"transaction-commit","family":"sync","place":{"offset":"0x1e"}}
        {"order":66,"process":7,"thread":1,"thread_name":"teller","event":"transaction-abort","family":"sync","place":{"offset":"0x1e"}}
        {"order":67,"process":7,"thread":1,"thread_name":"teller","event":"futex-wait","family":"sync","address":"0x401010","expected":2,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":68,"process":7,"thread":1,"thread_name":"teller","event":"futex-wait-end","family":"sync","address":"0x401010","result":-11,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":69,"process":7,"thread":1,"thread_name":"teller","event":"futex-wake","family":"sync","address":"0x401010","count":1,"object":{"kind":"variable","name":"v1010","module":"/w/bank"},"place":{"offset":"0x1e"}}
        {"order":70,"process":7,"thread":1,"thread_name":"teller","event":"signal-delivered","family":"process","signal":10,"place":{"offset":"0x1e"}}
        {"order":71,"process":7,"thread":1,"thread_name":"teller","event":"output","family":"output","descriptor":1,"size":12,"place":{"offset":"0x1e"}}
        {"order":72,"process":7,"thread":1,"thread_name":"teller","event":"process-forked","family":"process","child":4242,"place":{"offset":"0x1e"}}
        {"order":73,"process":7,"thread":1,"thread_name":"teller","event":"process-exec","family":"process","path":"/bin/ls","place":{"offset":"0x1e"}}
        {"order":74,"process":7,"thread":1,"thread_name":"teller","event":"thread-detached","family":"thread","handle":"0x7f01","place":{"offset":"0x1e"}}
        {"order":75,"process":7,"thread":1,"thread_name":"teller","event":"thread-cancelled","family":"thread","handle":"0x7f01","place":{"offset":"0x1e"}}
        {"order":76,"process":7,"thread":1,"thread_name":"teller","event":"thread-exit","family":"thread","place":{"offset":"0x1e"}}
        {"order":77,"process":7,"thread":1,"thread_name":"teller","event":"thread-joined","family":"thread","joined":2,"handle":"0x7f01","place":{"offset":"0x1e"}}
        {"order":78,"process":7,"thread":1,"thread_name":"teller","event":"thread-joined","family":"thread","joined":null,"handle":"0x7f02","place":{"offset":"0x1e"}}
        {"order":79,"process":7,"thread":1,"thread_name":"teller","event":"module-unload","family":"process","module":1,"place":{"offset":"0x1e"}}
        {"order":80,"process":7,"thread":1,"thread_name":"teller","event":"process-end","family":"process","status":3,"place":{"offset":"0x1e"}}
        "#);
    }

    #[test]
    fn stacks_follow_their_event() {
        let mut world = World::default();
        let loaded = event(0, 1, 0, load(1, "/w/bank", 0x40_0000, 0x40_9000));
        world.begin(&loaded);
        let frame = |offset| Place { module: ModuleId(1), offset };
        world.add_stack(StackId(3), vec![frame(30), frame(40), frame(50)]);
        let mut happened = event(1, 2, 30, EventKind::ThreadExit);
        happened.stack = StackId(3);
        let mut out = Vec::new();
        let mut lines = TextLines::new(Paint::Plain, "/w".into(), hooks());
        lines.write(&mut out, Some(77), &happened, &mut world, &mut Made).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        [77] T2   thread exit                                 bank.c:30 in f30
               called from bank.c:39 in f39
               called from bank.c:49 in f49
        ");

        let mut out = Vec::new();
        JsonLines::new(hooks()).write(&mut out, 77, &happened, &mut world, &mut Made).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r#"
        {"order":1,"process":77,"thread":2,"event":"thread-exit","family":"thread","place":{"module":"/w/bank","offset":"0x1e","function":"f30","file":"/w/bank.c","line":30,"column":5,"inlined":false},"stack":[{"module":"/w/bank","offset":"0x1e","function":"f30","file":"/w/bank.c","line":30,"column":5,"inlined":false},{"module":"/w/bank","offset":"0x28","function":"f39","file":"/w/bank.c","line":39,"column":5,"inlined":false},{"module":"/w/bank","offset":"0x32","function":"f49","file":"/w/bank.c","line":49,"column":5,"inlined":false}]}
        "#);
    }

    #[test]
    fn columns_widen_and_stay_wide() {
        let mut lines = TextLines::new(Paint::Plain, "/w".into(), hooks());
        let access = |address, size| EventKind::Access {
            kind: AccessKind::Read,
            address: Address(address),
            size,
        };
        let story = [
            event(0, 1, 30, load(1, "/w/stripped.so", 0x40_0000, 0x40_9000)),
            event(1, 1, 30, access(0x40_1010, 4)),
            event(2, 1, 30, EventKind::ThreadName { name: "a-long-name".into() }),
            event(3, 12, 30, access(0x40_1010, 4)),
            event(4, 1, 30, access(0x40_1010, 4)),
        ];
        let text = told(
            |event, world, out| lines.write(out, None, event, world, &mut Made).unwrap(),
            &story,
        );
        insta::assert_snapshot!(text, @r"
        T1   module load           /w/stripped.so        stripped.so+0x1e
        T1   read 4                v1010                 stripped.so+0x1e
        T1 a-long-name  thread name           a-long-name           stripped.so+0x1e
        T12             read 4                v1010                 stripped.so+0x1e
        T1 a-long-name  read 4                v1010                 stripped.so+0x1e
        ");
    }
}
