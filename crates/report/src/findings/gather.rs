//! What is remembered of a run while it lasts: threads, modules, stacks, and the findings as the
//! detector gave them.

use super::schema::Frame;
use super::{Library, stack};
use crate::names::Symbols;
use crate::per_thread::PerThread;
use crate::world::World;
use raddle_model::finding::Finding;
use raddle_model::{Address, Event, EventKind, Place, StackId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A block of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub start: Address,
    /// Bytes.
    pub size: u64,
    /// Who allocated it.
    pub thread: ThreadId,
    /// Where.
    pub place: Place,
    /// By which calls.
    pub stack: StackId,
}

impl Block {
    fn holds(&self, address: Address) -> bool {
        (self.start.0..self.start.0.saturating_add(self.size)).contains(&address.0)
    }
}

/// Memory among the local variables of a thread, perhaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// The thread.
    pub thread: ThreadId,
    /// Bytes up to the thread's pointer.
    pub below: u64,
}

/// What a detector looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Accesses.
    pub accesses: u64,
    /// Synchronisation events.
    pub synchronisations: u64,
    /// Distinct locks.
    pub locks: u64,
}

/// A run, as far as it was heard of.
#[derive(Debug, Default)]
pub struct Gathered {
    pub(super) programs: Vec<Program>,
    /// Pairs of places that [`Gathered::news`] has announced.
    pub(super) announced: BTreeSet<String>,
    /// Findings it has not looked at: program and number.
    pub(super) unannounced: Vec<(usize, u32)>,
}

/// One program that a process has been.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub process: u32,
    pub world: World,
    /// Of threads created, whether they started or not.
    pub births: PerThread<Birth>,
    /// In the order of loading.
    pub modules: Vec<String>,
    /// Where they are or last were: one past the end and path, by load address.
    mapped: BTreeMap<u64, (u64, String)>,
    /// By the detector's number.
    pub found: BTreeMap<u32, Found>,
    pub looked: Option<Looked>,
}

/// Where a thread comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Birth {
    pub creator: Option<ThreadId>,
    /// The creating call.
    pub at: Option<(StackId, Place)>,
}

/// A finding and the memory it is about.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub finding: Finding,
    pub block: Option<Block>,
    pub local: Option<Local>,
}

impl Found {
    /// The threads it speaks of.
    fn threads(&self) -> impl Iterator<Item = ThreadId> {
        let accesses = self.finding.accesses.iter().map(|access| access.thread);
        let waits = self.finding.waits.iter().map(|wait| wait.thread);
        let (block, local) = (self.block.map(|b| b.thread), self.local.map(|l| l.thread));
        accesses.chain(waits).chain(block).chain(local)
    }
}

impl Program {
    /// The threads that findings speak of, those who created them, and so on.
    pub fn concerned(&self) -> BTreeSet<ThreadId> {
        let mut concerned = BTreeSet::new();
        for mut thread in self.found.values().flat_map(Found::threads) {
            while concerned.insert(thread)
                && let Some(creator) = self.births.get(thread).and_then(|birth| birth.creator)
            {
                thread = creator;
            }
        }
        concerned
    }

    fn map(&mut self, path: &str, base: u64, end: u64) {
        if !self.modules.iter().any(|known| known == path) {
            self.modules.push(path.to_owned());
        }
        self.mapped.retain(|start, (past, _)| *past <= base || *start >= end);
        self.mapped.insert(base, (end, path.to_owned()));
    }

    /// The module around an address, and the offset in it.
    pub fn module_at(&self, address: Address) -> Option<(String, u64)> {
        let (base, (end, path)) = self.mapped.range(..=address.0).next_back()?;
        (address.0 < *end).then(|| (path.clone(), address.0 - base))
    }
}

impl Gathered {
    /// A process begins to be watched, or becomes another program.
    pub fn program(&mut self, process: u32) {
        self.programs.push(Program { process, ..Program::default() });
    }

    /// An event: those of threads and modules are of interest.
    pub fn event(&mut self, process: u32, event: &Event) {
        let program = self.current(process);
        let program = &mut self.programs[program];
        // Of what goes away nothing is forgotten: a finding may still speak of it.
        program.world.begin(event);
        match &event.kind {
            EventKind::ThreadCreate { child } => {
                let at = Some((event.stack, event.place));
                program.births.insert(*child, Birth { creator: Some(event.thread), at });
            }
            EventKind::ThreadStart { creator, .. } => {
                let birth = program.births.get(event.thread).copied().unwrap_or_default();
                let creator = birth.creator.or(*creator);
                program.births.insert(event.thread, Birth { creator, ..birth });
            }
            EventKind::ModuleLoad { path, base, end, .. } => program.map(path, base.0, end.0),
            _ => {}
        }
    }

    /// What lies at an address of the program that was heard of last, for people.
    pub fn address(&mut self, address: Address, symbols: &mut dyn Symbols, base: &Path) -> String {
        match self.programs.last_mut() {
            Some(program) => program.world.address(address, symbols).text(address.0, base),
            None => address.to_string(),
        }
    }

    /// A call stack of the same program; of one that is not known, the place alone.
    pub fn frames(
        &mut self,
        (stack, place): (StackId, Place),
        library: &mut dyn Library,
    ) -> Vec<Frame> {
        let Some(program) = self.programs.last_mut() else { return Vec::new() };
        let mut frames = stack::named(&mut program.world, stack, place, library);
        stack::with_source(&mut frames, library);
        frames
    }

    /// A call stack.
    pub fn stack(&mut self, process: u32, id: StackId, frames: Vec<Place>) {
        let program = self.current(process);
        self.programs[program].world.add_stack(id, frames);
    }

    /// A finding; a later one of the same number takes its place.
    pub fn finding(&mut self, process: u32, number: u32, finding: Finding, block: Option<Block>) {
        let at = self.current(process);
        let found = &mut self.programs[at].found;
        // The block as it was when the race was found: since then it may have been freed, and its
        // memory may be another's. So it is with threads.
        let earlier = found.get(&number);
        let first = earlier.and_then(|earlier| earlier.block);
        let holds = |block: &Block| block.holds(finding.address);
        let block = first.filter(holds).or(block);
        let same = earlier.filter(|earlier| earlier.finding.address == finding.address);
        let local = same.and_then(|earlier| earlier.local);
        if found.insert(number, Found { finding, block, local }).is_none() {
            self.unannounced.push((at, number));
        }
    }

    /// The memory of a finding that was just told may be local to a thread.
    pub fn local(&mut self, process: u32, number: u32, local: Local) {
        let program = self.current(process);
        if let Some(found) = self.programs[program].found.get_mut(&number) {
            found.local.get_or_insert(local);
        }
    }

    /// What the detector looked at.
    pub fn looked(&mut self, process: u32, looked: Looked) {
        let program = self.current(process);
        self.programs[program].looked = Some(looked);
    }

    /// The program a process is now.
    fn current(&mut self, process: u32) -> usize {
        match self.programs.iter().rposition(|program| program.process == process) {
            Some(program) => program,
            None => {
                self.program(process);
                self.programs.len() - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::typed;

    #[test]
    fn a_finding_keeps_the_block_it_was_found_in() {
        let mut gathered = Gathered::default();
        let block = |start, size| Block {
            start: Address(start),
            size,
            thread: ThreadId(1),
            place: typed::place(1, 0x120),
            stack: StackId::NONE,
        };
        let finding = |address| typed::race(address, 1);
        gathered.finding(1, 0, finding(0x9008), Some(block(0x9000, 64)));
        gathered.finding(1, 0, finding(0x9008), Some(block(0x9008, 8)));
        assert_eq!(gathered.programs[0].found[&0].block, Some(block(0x9000, 64)));
        gathered.finding(1, 0, finding(0x9008), None);
        assert_eq!(gathered.programs[0].found[&0].block, Some(block(0x9000, 64)));
        // Another instance, of better certainty, elsewhere.
        gathered.finding(1, 0, finding(0xa000), Some(block(0xa000, 8)));
        assert_eq!(gathered.programs[0].found[&0].block, Some(block(0xa000, 8)));
        assert_eq!(gathered.unannounced, [(0, 0)]);
    }

    #[test]
    fn a_program_by_exec_begins_anew() {
        let mut gathered = Gathered::default();
        gathered.finding(7, 0, typed::race(0x4010, 1), None);
        gathered.program(7);
        gathered.finding(7, 0, typed::race(0x4010, 2), None);
        let counts: Vec<u64> =
            gathered.programs.iter().map(|p| p.found[&0].finding.count).collect();
        assert_eq!(counts, [1, 2]);
    }
}
