//! Instrumentation: what is inserted into each block of the target's code.
//!
//! A block is looked at whole first ([`Instrumentation::plan`]): each instruction is decoded, the
//! module's facts are asked, and what must be inserted is written down. Then the engine walks the
//! block and the plan is carried out ([`Instrumentation::insert`]). What inserted code must know at
//! run time is a [`Site`], known by its number.
//!
//! At a block's first instruction the order is: is this the return of a hooked call? is this a
//! callback? is this the entry of a hooked function? and only then the block's counter, so that the
//! inside of opaque functions is not counted.

mod counting;
pub mod handlers;
mod insert;
pub mod leave;
mod plan;

pub use plan::{Plan, follows_call};

use raddle_decode::Gpr;
use raddle_model::{AccessKind, Place};
use raddle_wire::facts::LoopCondition;
use raddle_wire::options::{MemoryMode, PlaceFilter, ProbeOptions};
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// So often a program that has come back to one thread has its code built anew. It takes milliseconds, and a program that
/// starts and joins threads all its life would spend that life so.
const SOLOS: u32 = 4;

/// What inserted code refers to by number.
#[derive(Debug, Clone)]
pub enum Site {
    /// An instruction touches memory at an address computed before it. If it `updates`, this is its read
    /// or its write of the same memory.
    Access { pc: u64, place: Place, kind: AccessKind, size: u32, guarded: bool, updates: bool },
    /// An atomic update, of which a detector is told again when it has run.
    Updated { pc: u64, place: Place, size: u32, guarded: bool },
    /// A watched access, of which is told what it has left in memory.
    Touched,
    /// A string instruction.
    Strings { pc: u64, place: Place, operands: Vec<StringOperand>, scans: bool },
    /// An instruction whose vector or mask registers decide what it touches.
    Lanes { pc: u64, place: Place, bytes: Vec<u8> },
    /// The instruction after a call.
    Return { pc: u64 },
    /// The entry of a hooked function.
    Entry { pc: u64, hook: u32 },
    /// The entry of a function that hooked ones call back.
    Callback { pc: u64 },
    /// Where a loop around a condition wait is left.
    LoopLeft { pc: u64, place: Place, condition: LoopCondition },
    /// A request to Valgrind's tools.
    ClientRequest { pc: u64, place: Place },
    /// An atomic instruction that is a lock operation inlined by the compiler.
    Inlined { pc: u64, place: Place, hook: u32, compares: bool },
    /// Any instruction, where there is a debugger.
    Check { pc: u64, late: bool },
}

impl Site {
    /// The instruction.
    pub fn pc(&self) -> Option<u64> {
        match *self {
            Site::Access { pc, .. }
            | Site::Updated { pc, .. }
            | Site::Strings { pc, .. }
            | Site::Lanes { pc, .. }
            | Site::Return { pc }
            | Site::Entry { pc, .. }
            | Site::Callback { pc }
            | Site::LoopLeft { pc, .. }
            | Site::ClientRequest { pc, .. }
            | Site::Inlined { pc, .. }
            | Site::Check { pc, .. } => Some(pc),
            Site::Touched => None,
        }
    }
}

/// One side of a string instruction.
#[derive(Debug, Clone, Copy)]
pub struct StringOperand {
    pub kind: AccessKind,
    /// Bytes of an element.
    pub size: u32,
    /// rsi or rdi.
    pub register: Gpr,
}

/// What instrumentation has learned of the process.
#[derive(Debug)]
pub struct Instrumentation {
    watches_memory: bool,
    counts: bool,
    implicit_accesses: bool,
    /// A detector is fed.
    detects: bool,
    /// Accesses are checked in shadow memory first.
    shadows: bool,
    /// Calls, returns and hooked functions are watched.
    watches_calls: bool,
    only_places: Vec<PlaceFilter>,
    sites: boxcar::Vec<Site>,
    blocks: boxcar::Vec<counting::CountedBlock>,
    /// Functions that hooked ones call back.
    callbacks: RwLock<FxHashSet<u64>>,
    /// The size of the windows that have shadow, as a power of two, once the program has memory
    /// outside them; zero before.
    windows: AtomicU32,
    /// See [`Instrumentation::is_solo`]. It may be, is, and has begun to be so often.
    may_be_solo: bool,
    solo: AtomicBool,
    solos: AtomicU32,
}

impl Instrumentation {
    /// For what was asked.
    pub fn new(options: &ProbeOptions, shadows: bool) -> Instrumentation {
        let watches_memory = options.memory == MemoryMode::On;
        let may_be_solo = shadows && options.schedule.is_none();
        Instrumentation {
            watches_memory,
            counts: options.count,
            implicit_accesses: options.implicit_accesses,
            detects: options.detector.is_some(),
            shadows,
            watches_calls: watches_memory || options.sync || options.functions,
            only_places: options.only_places.clone(),
            sites: boxcar::Vec::new(),
            blocks: boxcar::Vec::new(),
            callbacks: RwLock::default(),
            windows: AtomicU32::new(0),
            may_be_solo,
            solo: AtomicBool::new(may_be_solo),
            solos: AtomicU32::new(0),
        }
    }

    /// Is there one thread, and comes all that others did before what it does? What it does itself comes before all that others
    /// will ever do, because whoever makes a thread is ordered before it. So its plain accesses are nothing to a
    /// detector, and code is built without them; atomic ones count, because they make memory a means of synchronisation.
    /// Where threads are controlled there is no such time, so that code is the same throughout.
    #[inline]
    pub fn is_solo(&self) -> bool {
        self.solo.load(Ordering::Relaxed)
    }

    /// May it come to be so again? Not when that has been too often.
    pub fn may_be_solo(&self) -> bool {
        self.may_be_solo && self.solos.load(Ordering::Relaxed) < SOLOS
    }

    /// There is one thread again. True when that is news, and code that was built before is to go.
    pub fn begin_solo(&self) -> bool {
        let begins = !self.solo.swap(true, Ordering::Relaxed);
        self.solos.fetch_add(u32::from(begins), Ordering::Relaxed);
        begins
    }

    /// There is going to be a second thread. True when that is news, and code that was built before must go.
    pub fn end_solo(&self) -> bool {
        self.solo.swap(false, Ordering::Relaxed)
    }

    /// The program has memory that has no shadow: from now on inserted code asks before it computes a
    /// cell's address. True when that is news, and code that does not ask must go.
    pub fn ask_for_windows(&self, bits: u32) -> bool {
        self.windows.swap(bits, Ordering::Relaxed) == 0
    }

    /// Is every return site watched?
    pub fn watches_returns(&self) -> bool {
        self.watches_calls
    }

    /// A site by its number.
    pub fn site(&self, number: u32) -> Option<&Site> {
        self.sites.get(number as usize)
    }

    pub fn add_site(&self, site: Site) -> u32 {
        self.sites.push(site) as u32
    }

    /// A hooked function was handed this one to call back. True when that is news: the block at
    /// its entry, if there is one already, lacks the code that notices.
    pub fn learn_callback(&self, function: u64) -> bool {
        let known = &self.callbacks;
        if known.read().unwrap_or_else(|e| e.into_inner()).contains(&function) {
            return false;
        }
        known.write().unwrap_or_else(|e| e.into_inner()).insert(function)
    }

    /// Code was unmapped: what was known of its addresses is no longer true.
    pub fn forget(&self, range: Range<u64>) {
        let mut callbacks = self.callbacks.write().unwrap_or_else(|e| e.into_inner());
        callbacks.retain(|pc| !range.contains(pc));
    }

    fn is_callback(&self, pc: u64) -> bool {
        self.callbacks.read().unwrap_or_else(|e| e.into_inner()).contains(&pc)
    }
}
