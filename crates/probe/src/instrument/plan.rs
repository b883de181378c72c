//! Planning a block: which of its instructions need which inserted code.

use super::counting::CountedBlock;
use super::{Instrumentation, Site, StringOperand};
use crate::monitor::modules::LoadedModule;
use crate::probe::Probe;
use raddle_analyse::fast::Side;
use raddle_decode::{AddressExpr, Decoded, Extent, Flow, Operand, Segment, decode};
use raddle_dynamorio::block::{AddressForm, AppInstruction, Block, Register, SegmentRegister};
use raddle_dynamorio::process;
use raddle_model::{AccessKind, Family, ModuleId, Place};
use raddle_wire::facts::{FactsView, LoopCondition};

/// Bytes behind the thread pointer that compiled code knows of, by the ABI: itself, and at 0x28 and 0x30 two secrets.
const THREAD_HEADER: i64 = 0x38;

/// What is inserted into one block.
#[derive(Debug, Default)]
pub struct Plan {
    /// Where the block begins.
    pub first: u64,
    /// The site of the return, when the block begins after a call.
    pub returns: Option<u32>,
    /// The site of the callback that begins here.
    pub callback: Option<u32>,
    /// The number of the block's counter.
    pub counter: Option<u32>,
    /// The block may run inside opaque functions.
    pub guarded: bool,
    /// Where threads may have to give way.
    pub points: crate::schedule::BlockPoints,
    /// Instructions with something to insert, in order.
    pub steps: std::collections::VecDeque<Step>,
    /// The block has a request to Valgrind's tools, whose address is in rax: dead to the engine, which
    /// has taken the request's code away.
    pub asks: bool,
}

impl Plan {
    /// Registers that keep the application's values throughout.
    pub fn spared(&self) -> &'static [Register] {
        if self.asks { &[Register::RAX] } else { &[] }
    }
}

/// What is inserted at one instruction.
#[derive(Debug, Default)]
pub struct Step {
    pub pc: u64,
    /// Sites of the hooked functions that begin here.
    pub entries: Vec<Entry>,
    /// Accesses with computable addresses.
    pub accesses: Vec<PlannedAccess>,
    /// Reads that acquire: they are reported when the instruction has run, because what they have
    /// read may have been written just before it did. Or what is told of others when they have run.
    pub late: Option<(u32, AddressForm)>,
    /// That is nothing inside opaque functions: see [`PlannedAccess::hidden`].
    pub late_hidden: bool,
    /// A string instruction.
    pub strings: Option<Strings>,
    /// The site of an instruction that touches lanes, and whether it may run inside an opaque function.
    pub lanes: Option<(u32, bool)>,
    /// The site of something rare, for which the engine's own call is quick enough.
    pub rare: Option<u32>,
    /// The site and memory operand of an inlined lock operation.
    pub inlined: Option<(u32, AddressForm)>,
    /// The stack pointer may be put anywhere: which frames there are is no longer known.
    pub moves_stack: bool,
}

/// An access with a computable address.
#[derive(Debug)]
pub struct PlannedAccess {
    pub site: u32,
    pub form: AddressForm,
    pub size: u32,
    /// In a module whose accesses do not count inside opaque functions.
    pub guarded: bool,
    /// Checked by inserted code, in these planes.
    pub check: Option<Side>,
    /// Where the planes are no help: it is nothing inside opaque functions, and no handler need look. In runtime
    /// libraries only: elsewhere the landing pad of an exception may run before it is known that a function was left.
    pub hidden: bool,
    /// The number of the runtime library it is in, if a detector wants to know.
    pub owner: Option<u8>,
}

/// The entry of a hooked function.
#[derive(Debug)]
pub struct Entry {
    pub site: u32,
    /// The hook names a callback, which may have to be learned.
    pub calls_back: bool,
    /// The trampoline may note its calls by itself.
    pub tallied: bool,
}

/// A string instruction's site.
#[derive(Debug, Clone, Copy)]
pub struct Strings {
    pub site: u32,
    /// Its extent is known only after it ran.
    pub scans: bool,
}

impl Instrumentation {
    /// Plans a block.
    pub fn plan(&self, probe: &Probe, block: &Block<'_>) -> Plan {
        let first = block.tag();
        let mut plan = Plan { first, ..Plan::default() };
        let module = probe.modules.find(first);
        if probe.scheduler.is_some() {
            plan.points = crate::schedule::BlockPoints::plan(block, module.as_deref());
        }
        if !self.watches_calls {
            return plan;
        }
        if follows_call(first) {
            plan.returns = Some(self.add_site(Site::Return { pc: first }));
        }
        if self.is_callback(first) {
            plan.callback = Some(self.add_site(Site::Callback { pc: first }));
        }
        let facts = module.as_ref().and_then(|m| m.facts());
        plan.guarded = facts.is_some_and(|f| f.guarded());
        let around = Surroundings { probe, module: module.as_deref(), facts };
        let mut counted = CountedBlock::default();
        let mut next = 0;
        for instruction in block.instructions() {
            plan.asks |= instruction.pc != next && follows_client_request(instruction.pc);
            let step = self.plan_instruction(&around, &instruction, next, &mut counted);
            plan.steps.extend(step);
            next = instruction.pc + instruction.bytes.len() as u64;
        }
        if !counted.is_empty() {
            plan.counter = Some(self.add_block(counted));
        }
        plan
    }

    fn plan_instruction(
        &self,
        around: &Surroundings<'_>,
        instruction: &AppInstruction<'_>,
        expected: u64,
        counted: &mut CountedBlock,
    ) -> Option<Step> {
        let pc = instruction.pc;
        let mut step = Step { pc, ..Step::default() };
        let place = around.place(pc);
        if let Some(facts) = &around.facts {
            for hook in facts.hooks_at(place.offset) {
                let Some(monitored) = around.probe.monitor.hooks.get(hook as usize) else {
                    continue;
                };
                if monitored.active {
                    let calls_back = monitored.hook.callback.is_some();
                    let tallied = monitored.is_quick();
                    let site = self.add_site(Site::Entry { pc, hook });
                    step.entries.push(Entry { site, calls_back, tallied });
                }
            }
        }
        step.rare = self.plan_rare(around, pc, place, pc != expected);
        let Some(decoded) = decode(instruction.bytes, pc) else {
            return step.is_needed().then_some(step);
        };
        step.moves_stack = decoded.moves_stack;
        if decoded.atomic && self.plan_inlined(around, &decoded, place, &mut step) {
            return Some(step);
        }
        if self.watches_memory && around.is_watched(&self.only_places, pc) {
            self.plan_accesses(around, instruction, &decoded, place, &mut step, counted);
        }
        step.is_needed().then_some(step)
    }

    /// The end of a loop around a condition wait, or a request to Valgrind's tools.
    fn plan_rare(
        &self,
        around: &Surroundings<'_>,
        pc: u64,
        place: Place,
        after_gap: bool,
    ) -> Option<u32> {
        if !around.probe.wants(Family::Sync) {
            return None;
        }
        let exit = around.facts.and_then(|facts| facts.wait_exit(place.offset));
        let precise = around.probe.options.rules.precise_conditions;
        let site = match exit.filter(|_| precise) {
            Some(LoopCondition::Offset(offset)) => {
                let condition = LoopCondition::Offset(offset.wrapping_add(pc - place.offset));
                Site::LoopLeft { pc, place, condition }
            }
            Some(condition) => Site::LoopLeft { pc, place, condition },
            None if after_gap && follows_client_request(pc) => Site::ClientRequest { pc, place },
            None => return None,
        };
        Some(self.add_site(site))
    }

    /// An atomic instruction that stands for an inlined lock operation is that and nothing else.
    fn plan_inlined(
        &self,
        around: &Surroundings<'_>,
        decoded: &Decoded,
        place: Place,
        step: &mut Step,
    ) -> bool {
        let Some(facts) = &around.facts else { return false };
        let Some(operand) = decoded.operands.first() else { return false };
        for hook in facts.inlined_at(place.offset) {
            let active = around.probe.monitor.hooks.get(hook as usize).is_some_and(|h| h.active);
            if active {
                let compares = decoded.compares;
                let site = Site::Inlined { pc: step.pc, place, hook, compares };
                step.inlined = Some((self.add_site(site), address_form(&operand.address)));
                return true;
            }
        }
        false
    }

    fn plan_accesses(
        &self,
        around: &Surroundings<'_>,
        instruction: &AppInstruction<'_>,
        decoded: &Decoded,
        place: Place,
        step: &mut Step,
        counted: &mut CountedBlock,
    ) {
        let pc = step.pc;
        let mut strings = Vec::new();
        let mut scans = false;
        for operand in &decoded.operands {
            let implicit = operand.implicit && !self.implicit_accesses;
            let own = around.is_own_data(operand)
                || around.is_own_frame(operand)
                || around.is_own_thread(operand);
            if implicit || own || around.is_constant(operand) {
                continue;
            }
            let kind = around.atomicity(place, operand);
            if self.is_solo() && matches!(kind, AccessKind::Read | AccessKind::Write) {
                continue;
            }
            match operand.extent {
                Extent::Once | Extent::Bulk => {
                    if self.counts {
                        counted.add(place, kind);
                    } else {
                        let guarded = around.facts.is_some_and(|f| f.guarded());
                        let owner = around.owner().filter(|_| self.detects);
                        let hidden = guarded && owner.is_some();
                        let size = operand.size;
                        let updates = is_updated(decoded, operand);
                        let site = Site::Access { pc, place, kind, size, guarded, updates };
                        let form = address_form(&operand.address);
                        let site = self.add_site(site);
                        let acquires =
                            matches!(kind, AccessKind::AtomicRead | AccessKind::SpinRead);
                        let updates = kind == AccessKind::AtomicUpdate && self.detects;
                        if updates && decoded.flow == Flow::Next && step.late.is_none() {
                            // It is reported before it runs, so that what it releases is known in
                            // time; what it acquires may have been released since.
                            let updated = Site::Updated { pc, place, size, guarded };
                            step.late = Some((self.add_site(updated), form));
                            step.late_hidden = hidden;
                        }
                        let told = around.probe.tells_values() && !acquires;
                        if told && decoded.flow == Flow::Next && step.late.is_none() {
                            step.late = Some((self.add_site(Site::Touched), form));
                        }
                        if acquires && decoded.flow == Flow::Next && step.late.is_none() {
                            step.late = Some((site, form));
                            step.late_hidden = hidden;
                        } else {
                            let check = self.check(kind, size);
                            let access =
                                PlannedAccess { site, form, size, guarded, hidden, check, owner };
                            step.accesses.push(access);
                        }
                    }
                }
                Extent::Repeat | Extent::Scan => {
                    scans |= operand.extent == Extent::Scan;
                    strings.extend(operand.address.base.map(|register| StringOperand {
                        kind: operand.kind,
                        size: operand.size,
                        register,
                    }));
                }
                Extent::Lanes if step.lanes.is_none() => {
                    let bytes = instruction.bytes.to_vec();
                    let guarded = around.facts.is_some_and(|f| f.guarded());
                    let site = self.add_site(Site::Lanes { pc, place, bytes });
                    step.lanes = Some((site, guarded));
                }
                Extent::Lanes => {}
            }
        }
        if !strings.is_empty() {
            let site = self.add_site(Site::Strings { pc, place, operands: strings, scans });
            step.strings = Some(Strings { site, scans });
        }
    }
}

impl Instrumentation {
    /// The planes in which inserted code can look first.
    fn check(&self, kind: AccessKind, size: u32) -> Option<Side> {
        let side = match kind {
            AccessKind::Read => Side::Read,
            AccessKind::Write => Side::Write,
            _ => return None,
        };
        (self.shadows && matches!(size, 1 | 2 | 4 | 8 | 16 | 32 | 64)).then_some(side)
    }
}

impl Step {
    fn is_needed(&self) -> bool {
        !self.entries.is_empty()
            || !self.accesses.is_empty()
            || self.late.is_some()
            || self.strings.is_some()
            || self.lanes.is_some()
            || self.inlined.is_some()
            || self.rare.is_some()
            || self.moves_stack
    }
}

/// What a block's instructions have in common.
struct Surroundings<'a> {
    probe: &'a Probe,
    module: Option<&'a LoadedModule>,
    facts: Option<FactsView<'a>>,
}

impl Surroundings<'_> {
    fn place(&self, pc: u64) -> Place {
        match self.module {
            Some(module) => module.place(pc),
            None => Place { module: ModuleId::NONE, offset: pc },
        }
    }

    /// The number of the runtime library this is.
    fn owner(&self) -> Option<u8> {
        self.module.map(LoadedModule::owner).filter(|owner| *owner != 0)
    }

    fn is_watched(&self, only: &[raddle_wire::options::PlaceFilter], pc: u64) -> bool {
        if self.module.is_some_and(|m| m.is_private(pc)) {
            return false;
        }
        only.is_empty()
            || self.module.is_some_and(|m| {
                let offset = pc - m.start;
                only.iter().any(|f| f.module == m.path && (f.start..f.end).contains(&offset))
            })
    }

    /// Does a runtime library touch its own static data, by an address in the code? It guards that
    /// with locks and atomics of its own, or knows why it need not. Its atomics still count: they
    /// may guard memory that is not static.
    fn is_own_data(&self, operand: &Operand) -> bool {
        !operand.kind.is_atomic()
            && self.facts.is_some_and(|f| f.runtime())
            && self.fixed_offset(operand).is_some()
    }

    /// Does a function of a runtime library touch its own frame, by the stack pointer? What is there is its locals, and what its
    /// caller has passed it by value. To whom it lends a local it does so for the time of a call, and if that is another
    /// thread, it waits for it by means of its own.
    fn is_own_frame(&self, operand: &Operand) -> bool {
        !operand.kind.is_atomic()
            && operand.stack
            && self.probe.options.detector.is_some()
            && self.facts.is_some_and(|f| f.runtime())
    }

    /// Does a runtime library touch its thread's own variables (`errno`, a locale, what it knows of the thread)? By the thread
    /// pointer no other thread's can be meant. The first words behind it are the runtime's whoever reads them: where the thread
    /// pointer points to, which most code that uses thread-local variables reads, and what guards against overflows of the stack.
    fn is_own_thread(&self, operand: &Operand) -> bool {
        let form = &operand.address;
        let is_header = operand.kind == AccessKind::Read
            && form.base.is_none()
            && form.index.is_none()
            && (0..THREAD_HEADER).contains(&form.displacement);
        !operand.kind.is_atomic()
            && form.segment == Some(Segment::Fs)
            && self.probe.options.detector.is_some()
            && (is_header || self.facts.is_some_and(|f| f.runtime()))
    }

    /// Is memory of the module read, by an address in the code, that the program never writes? A
    /// constant, or the slot of a function in another module. No detector learns from that.
    fn is_constant(&self, operand: &Operand) -> bool {
        operand.kind == AccessKind::Read
            && self.facts.is_some_and(|facts| {
                self.fixed_offset(operand).is_some_and(|at| facts.is_constant(at))
            })
    }

    /// Where in the module an operand is whose address stands in the code, when a detector asks.
    fn fixed_offset(&self, operand: &Operand) -> Option<u64> {
        let form = &operand.address;
        let fixed = form.base.is_none() && form.index.is_none() && form.segment.is_none();
        let address = form.displacement as u64;
        let module = self.module.filter(|m| (m.start..m.end).contains(&address))?;
        (fixed && self.probe.options.detector.is_some()).then(|| address - module.start)
    }

    /// The kind of an access, with what the facts know of it.
    fn atomicity(&self, place: Place, operand: &Operand) -> AccessKind {
        let rules = &self.probe.options.rules;
        let facts = self.facts.filter(|_| !operand.stack);
        let atomic = rules.debug_information && facts.is_some_and(|f| f.is_atomic(place.offset));
        let spins = rules.spin_reads && self.facts.is_some_and(|f| f.is_spin_read(place.offset));
        match operand.kind {
            AccessKind::Read if atomic => AccessKind::AtomicRead,
            AccessKind::Read if spins => AccessKind::SpinRead,
            AccessKind::Write if atomic => AccessKind::AtomicWrite,
            kind => kind,
        }
    }
}

/// Is this where a call returns to? Judged by the bytes before it: `call rel32`, or `call` by a
/// register or memory. Bytes that merely look so cost a comparison and harm nothing. Remembering
/// the calls that were met would not do: a loop's condition behind a call is often reached by a
/// jump, and its block built, before the call is met.
pub fn follows_call(pc: u64) -> bool {
    /// `ff /2` with a SIB byte and a 32-bit displacement; prefixes come before it.
    const LONGEST: usize = 7;
    const CALL_RELATIVE: u8 = 0xe8;
    const GROUP_5: u8 = 0xff;
    let mut before = [0; LONGEST];
    if process::read(pc.wrapping_sub(LONGEST as u64), &mut before) != LONGEST {
        return false;
    }
    let is_indirect = |pair: &[u8]| pair[0] == GROUP_5 && matches!(pair[1] >> 3 & 7, 2 | 3);
    before[LONGEST - 5] == CALL_RELATIVE || before.windows(2).any(is_indirect)
}

/// Valgrind's tools are asked by four rotations of rdi that cancel out and `xchg rbx, rbx`. The
/// engine takes the sequence out of the block and answers it as if nobody were there; what is left
/// is a gap, or a block that begins behind it.
fn follows_client_request(pc: u64) -> bool {
    const REQUEST: [u8; 19] = [
        0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7,
        0x33, 0x48, 0x87, 0xdb,
    ];
    let mut before = [0; REQUEST.len()];
    process::read(pc.wrapping_sub(REQUEST.len() as u64), &mut before) == REQUEST.len()
        && before == REQUEST
}

/// Does the instruction both read and write this memory?
fn is_updated(decoded: &Decoded, operand: &Operand) -> bool {
    let other = match operand.kind {
        AccessKind::Read => AccessKind::Write,
        AccessKind::Write => AccessKind::Read,
        _ => return false,
    };
    let same = |o: &Operand| (o.size, o.address) == (operand.size, operand.address);
    decoded.operands.iter().any(|o| o.kind == other && same(o))
}

fn address_form(expression: &AddressExpr) -> AddressForm {
    let register = |r: raddle_decode::Gpr| Register(r.0);
    AddressForm {
        segment: expression.segment.map(|s| match s {
            Segment::Fs => SegmentRegister::Fs,
            Segment::Gs => SegmentRegister::Gs,
        }),
        base: expression.base.map(register),
        index: expression.index.map(register),
        scale: expression.scale,
        displacement: expression.displacement,
        narrow: expression.narrow,
    }
}
