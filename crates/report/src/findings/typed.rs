//! Findings typed in for the tests of this module: a bank with a counter that nobody guards.
//!
//! Symbols are a table: in `/w/bank`, offset 0x100 + n is line n of `/w/bank.c`, whose text is
//! [`SOURCE`]; `counter` is at 0x4010, the mutex `m` at 0x4040 and `n` after it.

use super::forms::Repository;
use super::interleaving::{Interleaving, Lane, Step, StepKind};
use super::{Block, Circumstances, Extent, Filter, Gathered, Library, Looked};
use super::{Confirmation, Effect, Failure, Order, Outcome, Report, Target, Tool};
use crate::names::{Frame, Symbols};
use raddle_model::finding::{
    Certainty, Finding, FindingAccess, FindingKind, FindingWait, Rule, TouchKind,
};
use raddle_model::lockset::HeldLock;
use raddle_model::{Address, Event, EventKind, LockMode, ModuleId, Place, StackId, ThreadId};
use std::path::Path;

pub const BANK: u64 = 0x5555_0000_0000;
pub const LIBC: u64 = 0x7777_0000_0000;

/// Line, function, text, column of what is underlined.
const SOURCE: [(u32, &str, &str, u32); 6] = [
    (16, "worker", "    counter += 1;", 13),
    (20, "reader", "\tprintf(\"%d\\n\", counter);", 17),
    (32, "reader", "    pthread_mutex_lock(&m);", 5),
    (48, "main", "    pthread_create(&t, NULL, worker, NULL);", 5),
    (56, "main", "    char *buffer = malloc(64);", 20),
    (64, "fill", "    memset(buffer, 0, 8);", 5),
];

/// Where the bank's source lies, and the program, and nothing else.
pub fn repository() -> Repository<'static> {
    Repository {
        root: Path::new("/w"),
        has: &|path| ["/w", "/w/bank", "/w/bank.c"].map(Path::new).contains(&path),
    }
}

pub struct Table;

impl Symbols for Table {
    fn frames(&mut self, module: &str, offset: u64) -> Vec<Frame> {
        if module != "/w/bank" {
            let function = (offset >= 0x80).then(|| "start_thread".to_owned());
            return vec![Frame { function, ..Frame::default() }];
        }
        let line = offset.saturating_sub(0x100) as u32;
        // A caller is asked about one byte before its return address.
        let known = SOURCE.iter().find(|(l, ..)| *l == line || *l == line + 1);
        known.map_or_else(Vec::new, |(line, function, _, column)| {
            vec![Frame {
                function: Some((*function).into()),
                file: Some("/w/bank.c".into()),
                line: Some(*line),
                column: Some(*column),
                inlined: false,
            }]
        })
    }

    fn variable(&mut self, module: &str, offset: u64) -> Option<String> {
        let name = match offset {
            0x4010..0x4014 => "counter",
            0x4040..0x4068 => "m",
            0x4068..0x4090 => "n",
            _ => return None,
        };
        (module == "/w/bank").then(|| name.into())
    }
}

impl Library for Table {
    fn build_id(&mut self, module: &str) -> Option<String> {
        (module == "/w/bank").then(|| "b1".into())
    }

    fn extent(&mut self, _: &str, offset: u64) -> Option<Extent> {
        Some(Extent { within: offset - 0x4010, size: 4 })
    }

    fn source_line(&mut self, file: &str, line: u32) -> Option<String> {
        assert_eq!(file, "/w/bank.c");
        SOURCE.iter().find(|(l, ..)| *l == line).map(|(_, _, text, _)| (*text).into())
    }
}

pub fn place(module: u32, offset: u64) -> Place {
    Place { module: ModuleId(module), offset }
}

/// An access at a line of the bank, by a stack of the same number.
pub fn access(kind: TouchKind, thread: u32, line: u32) -> FindingAccess {
    FindingAccess {
        kind,
        size: 4,
        atomic: false,
        thread: ThreadId(thread),
        locks: Vec::new(),
        place: place(1, 0x100 + u64::from(line)),
        stack: StackId(line),
    }
}

/// A write of T3 in `worker` after a read of T2 in `reader`, which held `m`.
pub fn race(address: u64, count: u64) -> Finding {
    let mut read = access(TouchKind::Read, 2, 20);
    read.locks.push(held(0x4040, LockMode::Exclusive));
    Finding {
        kind: FindingKind::DataRace,
        certainty: Certainty::Observed,
        address: Address(address),
        accesses: vec![read, access(TouchKind::Write, 3, 16)],
        count,
        rules: vec![Rule::NoCommonLock],
        waits: Vec::new(),
    }
}

pub fn held(offset: u64, mode: LockMode) -> HeldLock {
    let lock = Address(BANK + offset);
    HeldLock { lock, mode, place: place(1, 0x120), stack: StackId(32), life: 0 }
}

/// What a probe would tell of the bank, as process 7.
pub fn gathered() -> (Gathered, Table) {
    let mut gathered = Gathered::default();
    tell(&mut gathered, 7);
    (gathered, Table)
}

pub fn tell(gathered: &mut Gathered, process: u32) {
    gathered.program(process);
    let mut order = 0;
    let mut event = |thread, stack, kind| {
        let thread = ThreadId(thread);
        let place = place(1, 0x100 + u64::from(stack));
        gathered.event(process, &Event { order, thread, place, stack: StackId(stack), kind });
        order += 1;
    };
    let load = |module, path: &str, base| EventKind::ModuleLoad {
        module: ModuleId(module),
        path: path.into(),
        base: Address(base),
        end: Address(base + 0x5000),
    };
    let start =
        |creator: Option<u32>| EventKind::ThreadStart { creator: creator.map(ThreadId), os_id: 1 };
    event(1, 0, load(1, "/w/bank", BANK));
    event(1, 0, load(2, "/lib/libc.so.6", LIBC));
    event(1, 0, start(None));
    for child in [2, 3] {
        event(1, 48, EventKind::ThreadCreate { child: ThreadId(child) });
        event(child, 0, start(Some(1)));
    }
    event(3, 0, EventKind::ThreadName { name: "worker".into() });
    for line in [16, 20, 32, 48, 56] {
        let frames = vec![place(1, 0x100 + u64::from(line)), place(2, 0x90)];
        gathered.stack(process, StackId(line), frames);
    }
    // memset, inside the C library.
    let frames = vec![place(2, 0x20), place(1, 0x140), place(2, 0x90)];
    gathered.stack(process, StackId(64), frames);
    gathered.stack(process, StackId(99), vec![place(2, 0x30)]);

    gathered.finding(process, 0, nobodys(), None);
    gathered.finding(process, 1, predicted(), Some(block()));
    gathered.finding(process, 2, race(BANK + 0x4010, 12), None);
    gathered.looked(process, Looked { accesses: 1234, synchronisations: 8, locks: 2 });
}

/// Something between the C library and itself.
fn nobodys() -> Finding {
    let mut finding = race(LIBC + 0x4000, 1);
    for access in &mut finding.accesses {
        access.place = place(2, 0x30);
        access.stack = StackId(99);
        access.locks.clear();
    }
    finding
}

/// Memory of the heap, given back while another thread fills it.
fn predicted() -> Finding {
    let mut fill = access(TouchKind::Write, 3, 64);
    fill.locks = vec![held(0x4040, LockMode::Shared), held(0x4068, LockMode::Exclusive)];
    fill.size = 8;
    fill.place = place(2, 0x20);
    let mut free = access(TouchKind::Free, 1, 48);
    free.size = 64;
    Finding {
        certainty: Certainty::Predicted,
        accesses: vec![fill, free],
        rules: vec![Rule::NoCommonLock, Rule::LockOrderIgnored, Rule::FreeIsWrite],
        ..race(0x9008, 1)
    }
}

/// A report of nothing but a cycle: T2 has `m` and wants `n`, T3 has the shared side of `n` and wants `m`.
pub fn cycle() -> Report {
    let wait = |thread: u32, wants: u64, line: u32, holds: HeldLock| FindingWait {
        thread: ThreadId(thread),
        wants: HeldLock {
            place: place(1, 0x100 + u64::from(line)),
            stack: StackId(line),
            ..held(wants, LockMode::Exclusive)
        },
        holds: vec![holds],
    };
    let finding = Finding {
        kind: FindingKind::LockOrder,
        certainty: Certainty::Predicted,
        accesses: Vec::new(),
        rules: Vec::new(),
        waits: vec![
            wait(2, 0x4068, 20, held(0x4040, LockMode::Exclusive)),
            wait(3, 0x4040, 64, held(0x4068, LockMode::Shared)),
        ],
        ..race(BANK + 0x4068, 1)
    };
    let (mut gathered, mut library) = gathered();
    for number in 0..3 {
        gathered.finding(7, number, finding.clone(), None);
    }
    gathered.report(circumstances(), &Filter::default(), &mut library)
}

fn block() -> Block {
    Block {
        start: Address(0x9000),
        size: 64,
        thread: ThreadId(1),
        place: place(1, 0x138),
        stack: StackId(56),
    }
}

pub fn circumstances() -> Circumstances {
    Circumstances {
        tool: Tool { name: "raddle".into(), version: "0.1.0".into(), detector: "hybrid".into() },
        target: Target { argv: vec!["./bank".into()], cwd: "/w".into(), hooks: Vec::new() },
        outcome: Outcome { exit: Some(0), ..Outcome::default() },
        without_symbols: vec!["/lib/libc.so.6".into()],
        warnings: Vec::new(),
    }
}

/// The report on the bank, as far as the filter lets it.
pub fn report(filter: &Filter) -> Report {
    let (mut gathered, mut library) = gathered();
    gathered.report(circumstances(), filter, &mut library)
}

/// The whole report on the bank.
pub fn bank() -> Report {
    report(&Filter::default())
}

/// The report on the bank, after a hunt that made it crash and deadlock.
pub fn failing() -> Report {
    let crash = Failure {
        id: "H1".into(),
        effect: "killed by signal 11".into(),
        end: serde_json::json!({"signal": 11}),
        policy: "random".into(),
        seed: "12".into(),
        count: 7,
        executions: 49,
        ..Failure::default()
    };
    let deadlock = "deadlock: these threads wait for each other's locks\n  T2 waits for 0x4068, and \
                    holds 0x4040\n  T3 waits for 0x4040, and holds 0x4068";
    let stuck = Failure {
        id: "H2".into(),
        effect: "deadlock".into(),
        end: serde_json::json!("deadlock"),
        deadlock: Some(deadlock.into()),
        policy: "lock-directed".into(),
        seed: "18446744073709551615".into(),
        count: 1,
        stacks: vec![bank().findings[0].accesses[0].stack.clone()],
        ..crash.clone()
    };
    Report { failures: vec![crash, stuck], ..bank() }
}

/// The cycle of locks, made to happen with a third thread in it.
pub fn deadlocked() -> Report {
    let mut report = cycle();
    let wait = |lane: usize| Step {
        lane,
        kind: StepKind::Wait,
        what: format!("asks for {}", ["n", "o", "m"][lane]),
        holds: vec![["m", "n", "o"][lane].into()],
        ..Step::default()
    };
    let lane = |thread| Lane { thread: ThreadId(thread), name: None };
    let interleaving =
        Interleaving { lanes: [1, 2, 3].map(lane).to_vec(), steps: [2, 0, 1].map(wait).to_vec() };
    report.findings[0].confirmation = Some(Confirmation {
        confirmed: true,
        trials: 2,
        hits: 2,
        effects: vec![Effect {
            order: 1,
            effect: "deadlock".into(),
            count: 2,
            ..Effect::default()
        }],
        orders: vec![Order {
            order: 1,
            seed: "7".into(),
            kept: "R1.1".into(),
            end: "deadlock".into(),
            interleaving: Some(interleaving),
            ..Order::default()
        }],
        ..Confirmation::default()
    });
    report
}
