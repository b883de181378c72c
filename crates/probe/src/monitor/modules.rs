//! Modules: numbering them, getting their facts from the command, turning addresses into places.

use crate::memory::shadow::PageKind;
use crate::probe::Probe;
use crate::stacks::{Spot, UnwindTable};
use crate::thread::{self, ThreadState};
use raddle_dynamorio::process;
use raddle_model::{Address, EventKind, ModuleId, Place};
use raddle_wire::facts::FactsView;
use raddle_wire::log::{Record, facts_file};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, RwLock};

/// Of an x86-64 instruction, in bytes.
const LONGEST_INSTRUCTION: usize = 15;

/// A module and what is known of it.
#[derive(Debug)]
pub struct LoadedModule {
    pub id: ModuleId,
    pub path: String,
    pub start: u64,
    pub end: u64,
    /// What of it the detector is not told of.
    private: Private,
    /// See [`Self::owner`].
    owner: u8,
    facts: Vec<u8>,
}

impl LoadedModule {
    /// Its facts; absent when the command could not give any.
    pub fn facts(&self) -> Option<FactsView<'_>> {
        FactsView::new(&self.facts).ok()
    }

    /// Its number among the runtime libraries, by which its static data is known; zero if it is none.
    pub fn owner(&self) -> u8 {
        self.owner
    }

    /// Is a detector not told what the code at this address does?
    pub fn is_private(&self, pc: u64) -> bool {
        match self.private {
            Private::Nothing => false,
            Private::Linked => self.facts().is_some_and(|facts| facts.is_private(pc - self.start)),
            Private::All => true,
        }
    }

    /// A place in it.
    pub fn place(&self, pc: u64) -> Place {
        Place { module: self.id, offset: pc - self.start }
    }
}

/// What of a module is private.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Private {
    /// There is no detector.
    Nothing,
    /// The code of libraries that were linked into it.
    Linked,
    All,
}

/// The modules mapped now.
#[derive(Debug, Default)]
pub struct Modules {
    /// Sorted by address.
    loaded: RwLock<Vec<Arc<LoadedModule>>>,
    next: AtomicU32,
    /// How many runtime libraries there have been.
    owners: AtomicU32,
    /// Grows with every load and unload: cached places of an older age are stale.
    age: AtomicU32,
}

impl Modules {
    /// The module an address lies in.
    pub fn find(&self, pc: u64) -> Option<Arc<LoadedModule>> {
        let loaded = self.loaded.read().unwrap_or_else(|e| e.into_inner());
        let after = loaded.partition_point(|m| m.start <= pc);
        let module = loaded.get(after.checked_sub(1)?)?;
        (pc < module.end).then(|| module.clone())
    }

    /// The number of one more runtime library; zero when there are no more numbers.
    fn next_owner(&self) -> u8 {
        const NUMBERS: u32 = 127;
        let before = self.owners.fetch_add(1, Ordering::Relaxed);
        if before < NUMBERS { before as u8 + 1 } else { 0 }
    }

    /// Grows whenever a module comes or goes.
    pub fn age(&self) -> &AtomicU32 {
        &self.age
    }

    /// Where the static data of a module lies that is a runtime library; nowhere if it is none.
    fn runtime_data(&self, module: ModuleId) -> (u64, u64) {
        let loaded = self.loaded.read().unwrap_or_else(|e| e.into_inner());
        let is_runtime = |m: &&Arc<LoadedModule>| m.facts().is_some_and(|f| f.runtime());
        let module = loaded.iter().find(|m| m.id == module).filter(is_runtime);
        module.map_or((0, 0), |m| (m.start, m.end))
    }

    /// The place of an address.
    pub fn place_of(&self, pc: u64) -> Place {
        match self.find(pc) {
            Some(module) => module.place(pc),
            None => Place { module: ModuleId::NONE, offset: pc },
        }
    }
}

/// A thread's memory of recent places: call sites repeat.
#[derive(Debug)]
pub struct PlaceCache {
    age: u32,
    rows: [(u64, Place); PLACES],
    /// The module whose data was asked for last, and where it is.
    data: (ModuleId, (u64, u64)),
}

const PLACES: usize = 64;
const NO_PLACE: Place = Place { module: ModuleId::NONE, offset: 0 };

impl Default for PlaceCache {
    fn default() -> Self {
        PlaceCache { age: u32::MAX, rows: [(0, NO_PLACE); PLACES], data: (ModuleId::NONE, (0, 0)) }
    }
}

impl PlaceCache {
    /// The age of the module table that the last place asked for is right for.
    pub fn age(&self) -> u32 {
        self.age
    }

    /// Is this static data of a runtime library, seen from its own code?
    pub fn is_own_data(&mut self, modules: &Modules, module: ModuleId, address: Address) -> bool {
        self.update(modules);
        if self.data.0 != module {
            self.data = (module, modules.runtime_data(module));
        }
        let (start, end) = self.data.1;
        (start..end).contains(&address.0)
    }

    /// Forgets what is true no longer.
    fn update(&mut self, modules: &Modules) {
        let age = modules.age.load(Ordering::Acquire);
        if age != self.age {
            *self = PlaceCache { age, ..PlaceCache::default() };
        }
    }

    /// The place of an address.
    pub fn place_of(&mut self, modules: &Modules, pc: u64) -> Place {
        self.update(modules);
        let row = &mut self.rows[(pc ^ (pc >> 6)) as usize % PLACES];
        if row.0 != pc {
            *row = (pc, modules.place_of(pc));
        }
        row.1
    }
}

/// A module is about to run for the first time.
pub fn load(probe: &Probe, module: &process::Module<'_>) {
    let ours = [load as *const () as u64, process::engine_code()];
    if ours.iter().any(|code| (module.start..module.end).contains(code)) {
        // The probe and the engine are no part of the program.
        return;
    }
    let modules = &probe.modules;
    let id = ModuleId(modules.next.fetch_add(1, Ordering::Relaxed) + 1);
    let facts = if module.path.is_empty() { Vec::new() } else { ask_for_facts(probe, id, module) };
    let is_runtime = FactsView::new(&facts).is_ok_and(|facts| facts.runtime());
    let loaded = Arc::new(LoadedModule {
        id,
        owner: if is_runtime { modules.next_owner() } else { 0 },
        path: module.path.to_owned(),
        start: module.start,
        end: module.end,
        private: match probe.options.detector.is_some() {
            false => Private::Nothing,
            true if is_listed(&probe.options.private, module.path) => Private::All,
            true => Private::Linked,
        },
        facts,
    });
    if probe.options.stacks
        && let Some(table) = unwind_table(module.start)
    {
        probe.stacks.add_module(module.start..module.end, table);
    }
    {
        let mut all = modules.loaded.write().unwrap_or_else(|e| e.into_inner());
        let at = all.partition_point(|m| m.start < module.start);
        all.insert(at, loaded.clone());
        modules.age.fetch_add(1, Ordering::Release);
    }
    mark_pages(probe, &loaded);
    announce_spins(probe, &loaded);
    if let Some(scheduler) = &probe.scheduler {
        scheduler.module_loaded(&loaded);
    }
    if let Some(debugger) = &probe.debugger {
        debugger.module_loaded(&loaded);
    }
    announce(probe, &loaded);
}

/// Tells the detector what lies there now: which pages are the module's own, if it is a runtime library, and which nobody writes.
fn mark_pages(probe: &Probe, module: &LoadedModule) {
    let Some(analysis) = &probe.analysis else { return };
    analysis.module_mapped(module.start..module.end);
    let kind = PageKind::owned(module.owner);
    if module.owner != 0 {
        analysis.mark_pages(module.start..module.end, kind);
    }
    for constant in constant_segments(module.start).unwrap_or_default() {
        let end = constant.end.min(module.end);
        analysis.mark_pages(constant.start..end, kind.constant());
    }
}

/// Memory that was for reading only is another, or may be written: whose it is now is not known.
pub fn unmark_pages(probe: &Probe, start: u64, length: u64) {
    let Some(analysis) = &probe.analysis else { return };
    let end = start.saturating_add(length);
    let loaded = probe.modules.loaded.read().unwrap_or_else(|e| e.into_inner());
    for module in loaded.iter().filter(|m| m.start < end && start < m.end) {
        let stretch = start.max(module.start)..end.min(module.end);
        analysis.mark_pages(stretch, PageKind::owned(module.owner));
    }
}

/// Tells the detector of the variables that the module's code spins on, where they stand in the code.
fn announce_spins(probe: &Probe, module: &LoadedModule) {
    let (Some(analysis), Some(facts)) = (&probe.analysis, module.facts()) else { return };
    if !probe.options.rules.spin_reads || facts.runtime() {
        return;
    }
    for offset in facts.spin_reads() {
        let pc = module.start + offset;
        if module.is_private(pc) {
            continue;
        }
        let mut bytes = [0; LONGEST_INSTRUCTION];
        let read = process::read(pc, &mut bytes);
        let Some(decoded) = raddle_decode::decode(&bytes[..read], pc) else { continue };
        for operand in decoded.operands {
            let form = &operand.address;
            let fixed = form.base.is_none() && form.index.is_none() && form.segment.is_none();
            let address = form.displacement as u64;
            if fixed && (module.start..module.end).contains(&address) {
                analysis.spun_on(address, address + u64::from(operand.size));
            }
        }
    }
}

/// Is the file one of these, or a version of one: `libgomp.so.1.0.0` for `libgomp.so.1`?
fn is_listed(names: &[String], path: &str) -> bool {
    let Some(file) = path.rsplit('/').next() else { return false };
    let is_version = |rest: &str| rest.is_empty() || rest.starts_with('.');
    names.iter().any(|name| file.strip_prefix(name.as_str()).is_some_and(is_version))
}

/// A module was unmapped.
pub fn unload(probe: &Probe, module: &process::Module<'_>) {
    let modules = &probe.modules;
    let mut all = modules.loaded.write().unwrap_or_else(|e| e.into_inner());
    let Some(at) = all.iter().position(|m| m.start == module.start) else { return };
    let gone = all.remove(at);
    modules.age.fetch_add(1, Ordering::Release);
    drop(all);
    if let Some(analysis) = &probe.analysis {
        analysis.mark_pages(gone.start..gone.end, PageKind::default());
    }
    probe.stacks.remove_module(module.start..module.end);
    probe.instrumentation.forget(module.start..module.end);
    emit(probe, EventKind::ModuleUnload { module: gone.id });
}

/// Tells a fresh log about the modules that are there already.
pub fn announce_all(probe: &Probe) {
    let all = probe.modules.loaded.read().unwrap_or_else(|e| e.into_inner()).clone();
    all.iter().for_each(|m| announce(probe, m));
}

fn announce(probe: &Probe, module: &LoadedModule) {
    let event = EventKind::ModuleLoad {
        module: module.id,
        path: module.path.clone(),
        base: Address(module.start),
        end: Address(module.end),
    };
    emit(probe, event);
}

fn emit(probe: &Probe, event: EventKind) {
    let spot = Spot { place: NO_PLACE, pc: 0, returns: false, sp: 0, bp: 0 };
    match thread::current(probe) {
        Some(thread) => thread.emit(probe, spot, event),
        None => probe.threads.keep_early(event),
    }
}

/// Asks the command and waits: code of the module must not run before we know what it means.
fn ask_for_facts(probe: &Probe, id: ModuleId, module: &process::Module<'_>) -> Vec<u8> {
    let Some(log) = probe.log() else { return Vec::new() };
    let request = log.next_request();
    let record = Record::NeedFacts { request, module: id, path: module.path.to_owned() };
    let mut writer = crate::memory::log::Writer::new(raddle_model::ThreadId(0));
    if let Err(why) = writer.write(&log, &record) {
        crate::probe::fail(&why);
    }
    writer.close(&log);
    if !log.await_answer(request) {
        return Vec::new();
    }
    let file = format!("{}/{}", probe.options.directory, facts_file(log.name(), request));
    std::fs::read(file).unwrap_or_default()
}

/// The program headers of the module mapped at `start`, as the file has them.
fn program_headers(start: u64) -> Option<Vec<Vec<u8>>> {
    let header = bytes(start, 64)?;
    let (offset, size) = (number(32..40, &header)?, number(54..56, &header)?);
    let count = number(56..58, &header)?;
    (0..count).map(|i| bytes(start + offset + i * size, size as usize)).collect()
}

/// A number of up to eight bytes.
fn number(range: Range<usize>, from: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word[..range.len()].copy_from_slice(from.get(range)?);
    Some(u64::from_le_bytes(word))
}

/// What is mapped of the module at `start` for reading only.
fn constant_segments(start: u64) -> Option<Vec<Range<u64>>> {
    const PF_W: u64 = 2;
    let headers = program_headers(start)?;
    let mut loads = Vec::new();
    for row in headers.iter().filter(|row| number(0..4, row) == Some(u64::from(PT_LOAD))) {
        let (flags, address) = (number(4..8, row)?, number(16..24, row)?);
        loads.push((flags, address, number(40..48, row)?));
    }
    let bias = start.wrapping_sub(loads.first()?.1 & !4095);
    let constant = loads.iter().filter(|load| load.0 & PF_W == 0);
    Some(
        constant
            .map(|load| load.1.wrapping_add(bias)..(load.1 + load.2).wrapping_add(bias))
            .collect(),
    )
}

const PT_LOAD: u32 = 1;

/// Copies the unwind table of the module mapped at `start`, from its program headers.
fn unwind_table(start: u64) -> Option<UnwindTable> {
    const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
    let mut loads = Vec::new();
    let mut table = None;
    for row in program_headers(start)? {
        let (address, length) = (number(16..24, &row)?, number(40..48, &row)?);
        match number(0..4, &row)? as u32 {
            PT_LOAD => loads.push((address, length)),
            PT_GNU_EH_FRAME => table = Some((address, length)),
            _ => {}
        }
    }
    let bias = start.wrapping_sub(loads.first()?.0 & !4095);
    let (address, length) = table?;
    let header_at = address.wrapping_add(bias);
    let header = bytes(header_at, length as usize)?;
    // Version 1, pointer to .eh_frame as a 32-bit offset from its own place: what every linker
    // writes. The table's end is not recorded: it ends with its segment at the latest.
    if header.first() != Some(&1) || header.get(1) != Some(&0x1b) {
        return None;
    }
    let relative = number(4..8, &header)? as u32 as i32;
    let frames_at = (header_at + 4).wrapping_add_signed(i64::from(relative));
    let in_segment = |(a, l): &&(u64, u64)| {
        let mapped = a.wrapping_add(bias);
        (mapped..mapped + l).contains(&frames_at)
    };
    let segment = loads.iter().find(in_segment)?;
    let end = segment.0.wrapping_add(bias) + segment.1;
    let frames = bytes(frames_at, (end - frames_at) as usize)?;
    Some(UnwindTable { header: (header_at, header), frames: (frames_at, frames) })
}

fn bytes(address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; length];
    (process::read(address, &mut bytes) == length).then_some(bytes)
}

/// The spot of code at `pc` with these registers.
pub fn spot(probe: &Probe, thread: &mut ThreadState, pc: u64, sp: u64, bp: u64) -> Spot {
    let place = thread.places.place_of(&probe.modules, pc);
    Spot { place, pc, returns: false, sp, bp }
}

/// The spot of a call that returns to `pc`.
pub fn call_spot(probe: &Probe, thread: &mut ThreadState, pc: u64, sp: u64, bp: u64) -> Spot {
    let place = thread.places.place_of(&probe.modules, pc.wrapping_sub(1));
    Spot { place, pc, returns: true, sp, bp }
}
