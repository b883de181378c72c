//! Loops that wait, recognised in machine code.
//!
//! Two kinds matter to a race detector. Around a call that waits for a condition stands a loop that
//! tests the condition (`seeds/000…` 5.1, 6.3); when the condition already holds, the call is never
//! made, and only leaving the loop, or passing over it, tells that the thread relies on what another
//! did before: [`WaitExit`]. And a small loop that does nothing but read a location until it changes
//! is a hand-made wait: its loads are *spin reads*.
//!
//! A loop is what lies between a jump backwards and its target, whatever its size: compilers lay loops
//! out that way, but for parts they believe cold. A call that waits belongs to the smallest loop
//! around it. Where compilers test a condition once before the loop and again at its end, the jump
//! over the loop goes to where the loop exits to, so the exit is the place to watch for both.

use crate::address::Gpr;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use std::collections::{BTreeMap, BTreeSet};

/// Longest loop, in instructions, whose loads can be spin reads. `while (!flag) usleep(1);` has
/// about eight without optimisation.
const SPIN_LONGEST: usize = 24;

/// How far before a loop the test stands that passes over it: the test, the jump, and what the loop
/// needs in registers.
const NEAR: usize = 16;

/// What a called function does, as far as loops are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// Waits for the condition in its first argument.
    Wait,
    /// Waits for some condition: a function around one that does.
    Wrapper,
    /// Yields or sleeps, and does nothing else.
    Pause,
    /// Anything else.
    Other,
}

/// Where a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallTarget {
    /// To an address.
    Code(u64),
    /// Through the word at an address (`call [rip+x]`).
    Slot(u64),
}

/// Where the condition is that a loop waits for, seen from the loop's exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionAt {
    /// The code does not tell.
    Unknown,
    /// At an address of the module.
    Address(u64),
    /// At a register's value plus a displacement.
    Register(Gpr, i32),
}

/// The instruction that is reached when a loop around a wait is left or passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitExit {
    /// The instruction.
    pub at: u64,
    /// What was waited for.
    pub condition: ConditionAt,
}

/// The loops found in a stretch of code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loops {
    /// Sorted, one per instruction.
    pub exits: Vec<WaitExit>,
    /// Instructions whose loads are spin reads, sorted.
    pub spin_reads: Vec<u64>,
    /// Calls that wait and stand in no loop: the functions they are in are wrappers.
    pub waits_outside: Vec<u64>,
}

/// Finds the loops in code that lies at `address`; `starts` is where functions begin, as far as known,
/// and `callee` says what a call goes to.
pub fn loops(
    code: &[u8],
    address: u64,
    starts: &BTreeSet<u64>,
    callee: impl Fn(CallTarget) -> Callee,
) -> Loops {
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, code, address, DecoderOptions::NONE).into_iter().collect();
    let at = |ip: u64| instructions.binary_search_by_key(&ip, |i| i.ip()).ok();
    let mut found = Loops::default();
    // By first and last instruction.
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut waits: Vec<(usize, Callee)> = Vec::new();
    for (number, instruction) in instructions.iter().enumerate() {
        if let Some(target) = call_target(instruction) {
            let what =
                callee(loaded_target(&instructions[..number], instruction).unwrap_or(target));
            if matches!(what, Callee::Wait | Callee::Wrapper) {
                waits.push((number, what));
            }
        } else if let Some(first) = jump_target(instruction)
            .filter(|target| *target <= instruction.ip())
            // A jump into a function's cold part, which may lie before it, is no loop.
            .filter(|target| {
                *target >= instruction.ip()
                    || starts.range(target + 1..=instruction.ip()).next().is_none()
            })
            .and_then(at)
        {
            spans.push((first, number));
        }
    }
    let mut exits: BTreeMap<u64, ConditionAt> = BTreeMap::new();
    for (wait, what) in waits {
        let around = spans.iter().filter(|(first, last)| (*first..=*last).contains(&wait));
        let Some(&(first, last)) = around.min_by_key(|(first, last)| last - first) else {
            found.waits_outside.push(instructions[wait].ip());
            continue;
        };
        let last = end_of_test(&instructions, &spans, (first, last));
        let body = &instructions[first..=last];
        let condition = match what {
            Callee::Wait => condition_at(&instructions[..first], body, wait - first),
            _ => ConditionAt::Unknown,
        };
        let onward = |exit: u64| at(exit).map_or(exit, |exit| past_jump(&instructions[exit]));
        for exit in exits_of(body).into_iter().map(onward) {
            let known = exits.entry(exit).or_insert(condition);
            if *known != condition {
                *known = ConditionAt::Unknown;
            }
            // What the loop has in registers is not there where it was passed over.
            for passed in passed_over(&instructions, first, exit) {
                exits.entry(passed).or_insert(ConditionAt::Unknown);
            }
        }
    }
    found.exits = exits.into_iter().map(|(at, condition)| WaitExit { at, condition }).collect();
    for (first, last) in spans {
        if last - first < SPIN_LONGEST {
            let body = &instructions[first..=last];
            let loads = spin_reads(body, &callee);
            if !loads.is_empty() {
                found.spin_reads.extend(guard_reads(&instructions[..first], body, &loads));
            }
            found.spin_reads.extend(loads);
        }
    }
    found.spin_reads.sort_unstable();
    found.spin_reads.dedup();
    found
}

/// Where calls go that stand in code at `address`: the functions it calls.
pub fn calls(code: &[u8], address: u64) -> Vec<CallTarget> {
    Decoder::with_ip(64, code, address, DecoderOptions::NONE)
        .into_iter()
        .filter_map(|instruction| call_target(&instruction))
        .collect()
}

fn call_target(instruction: &Instruction) -> Option<CallTarget> {
    match instruction.flow_control() {
        FlowControl::Call => Some(CallTarget::Code(instruction.near_branch_target())),
        FlowControl::IndirectCall if instruction.is_ip_rel_memory_operand() => {
            Some(CallTarget::Slot(instruction.ip_rel_memory_address()))
        }
        FlowControl::IndirectCall => Some(CallTarget::Code(0)),
        _ => None,
    }
}

/// The slot that a call through a register goes to, if the register was loaded from one shortly before:
/// compilers do that once for a loop.
fn loaded_target(before: &[Instruction], call: &Instruction) -> Option<CallTarget> {
    /// Further back it may be another function.
    const REACH: usize = 64;
    if call.flow_control() != FlowControl::IndirectCall || call.op0_kind() != OpKind::Register {
        return None;
    }
    let register = call.op0_register();
    let writes = |i: &&Instruction| {
        i.op_count() > 0
            && i.op0_kind() == OpKind::Register
            && i.op0_register().full_register() == register
            && !matches!(i.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push)
    };
    let last = before.iter().rev().take(REACH).find(writes)?;
    (last.mnemonic() == Mnemonic::Mov && last.is_ip_rel_memory_operand())
        .then(|| CallTarget::Slot(last.ip_rel_memory_address()))
}

fn jump_target(instruction: &Instruction) -> Option<u64> {
    matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    )
    .then(|| instruction.near_branch_target())
}

/// The last instruction of a loop's test, which may go on behind the jump that ends the loop's shortest way
/// round: by another jump to the same beginning, or one into its midst, with nothing between but reading
/// and testing.
fn end_of_test(
    instructions: &[Instruction],
    spans: &[(usize, usize)],
    (first, mut last): (usize, usize),
) -> usize {
    while let Some(further) = spans
        .iter()
        .filter(|(target, jump)| (first..=last).contains(target) && *jump > last)
        .map(|(_, jump)| *jump)
        .min()
        .filter(|jump| instructions[last + 1..=*jump].iter().all(only_tests))
    {
        last = further;
    }
    last
}

/// Does an instruction leave memory alone, and stay in its function?
fn only_tests(instruction: &Instruction) -> bool {
    let stays = matches!(
        instruction.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    let mut factory = InstructionInfoFactory::new();
    stays && !factory.info(instruction).used_memory().iter().any(|used| is_write(used.access()))
}

/// Where control is after a jump that is always taken: there it also comes from the test that passes over
/// the loop.
fn past_jump(instruction: &Instruction) -> u64 {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => instruction.near_branch_target(),
        _ => instruction.ip(),
    }
}

/// Where the test before a loop leads to that spares the thread the loop and has a beginning of its own, with
/// what differs from the loop's exit, and joins what follows the exit a few instructions later.
fn passed_over(instructions: &[Instruction], first: usize, exit: u64) -> Vec<u64> {
    /// What differs: some registers.
    const SHORT: usize = 8;
    let at = |ip: u64| instructions.binary_search_by_key(&ip, |i| i.ip()).ok();
    let straight = |from: usize| {
        let plain = |i: &&Instruction| i.flow_control() == FlowControl::Next;
        instructions[from..].iter().take(SHORT).take_while(plain)
    };
    let Some(exit) = at(exit) else { return Vec::new() };
    // One past each: the last may be followed by a call.
    let joins: Vec<u64> = straight(exit).map(Instruction::next_ip).collect();
    let tests = &instructions[first.saturating_sub(NEAR)..first];
    let tests = tests.iter().filter(|i| i.flow_control() == FlowControl::ConditionalBranch);
    let joined = |from: &usize| {
        let end = instructions.get(from + straight(*from).count());
        end.is_some_and(|end| {
            end.flow_control() == FlowControl::UnconditionalBranch
                && joins.contains(&end.near_branch_target())
        })
    };
    let copies = tests.filter_map(|test| at(test.near_branch_target())).filter(joined);
    copies.map(|copy| instructions[copy].ip()).collect()
}

/// Instructions outside the body that control can go to from it.
///
/// Outside is also what stands between the loop's first and last instruction and never goes back: code
/// that was not optimised has its exits there.
fn exits_of(body: &[Instruction]) -> Vec<u64> {
    let at = |ip: u64| body.binary_search_by_key(&ip, |i| i.ip()).ok();
    let goes_back = going_back(body);
    let mut exits = Vec::new();
    for (number, instruction) in body.iter().enumerate().filter(|(n, _)| goes_back[*n]) {
        let jump = jump_target(instruction).map(|target| (target, at(target)));
        let next = (instruction.flow_control() == FlowControl::ConditionalBranch)
            .then(|| (instruction.next_ip(), (number + 1 < body.len()).then_some(number + 1)));
        for (ip, inside) in [jump, next].into_iter().flatten() {
            if inside.is_none_or(|number| !goes_back[number]) {
                exits.push(ip);
            }
        }
    }
    exits
}

/// Which instructions of a loop can lead to one that goes back to its first.
fn going_back(body: &[Instruction]) -> Vec<bool> {
    let at = |ip: u64| body.binary_search_by_key(&ip, |i| i.ip()).ok();
    let targets: Vec<Option<usize>> = body.iter().map(|i| jump_target(i).and_then(at)).collect();
    let mut goes_back: Vec<bool> = targets.iter().map(|target| *target == Some(0)).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for number in (0..body.len()).rev() {
            let falls_through = !matches!(
                body[number].flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
                    | FlowControl::Interrupt
            );
            let leads = falls_through && goes_back.get(number + 1) == Some(&true)
                || targets[number].is_some_and(|target| goes_back[target]);
            if leads && !goes_back[number] {
                goes_back[number] = true;
                changed = true;
            }
        }
    }
    goes_back
}

/// The first argument of the call at `wait`, if it is the same at the loop's exit.
fn condition_at(before: &[Instruction], body: &[Instruction], wait: usize) -> ConditionAt {
    let mut factory = InstructionInfoFactory::new();
    let mut wanted = Register::RDI;
    for instruction in body[..wait].iter().rev() {
        if instruction.flow_control() != FlowControl::Next {
            return ConditionAt::Unknown;
        }
        if !writes(&mut factory, instruction, wanted) {
            continue;
        }
        let source = match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Lea, _) if instruction.is_ip_rel_memory_operand() => {
                return ConditionAt::Address(instruction.ip_rel_memory_address());
            }
            (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64) => {
                return ConditionAt::Address(instruction.immediate(1));
            }
            (Mnemonic::Lea, _) if instruction.memory_index() == Register::None => {
                (instruction.memory_base(), instruction.memory_displacement64() as i32)
            }
            (Mnemonic::Mov, OpKind::Register) if lasts(instruction.op1_register()) => {
                (instruction.op1_register(), 0)
            }
            (Mnemonic::Mov, OpKind::Register) => {
                wanted = instruction.op1_register().full_register();
                continue;
            }
            _ => return ConditionAt::Unknown,
        };
        let (register, displacement) = source;
        let changes = |i: &Instruction| {
            i.flow_control() == FlowControl::Next && writes(&mut factory, i, register)
        };
        return match lasts(register) && !body.iter().any(changes) {
            true => register_at_exit(before, body, register, displacement),
            false => ConditionAt::Unknown,
        };
    }
    ConditionAt::Unknown
}

/// A register that does not change in the loop, seen from its exit. Compilers set it behind the test
/// that jumps over the loop, so that it is not set when the loop is passed over; then it must be an
/// address that is known all the same.
fn register_at_exit(
    before: &[Instruction],
    body: &[Instruction],
    register: Register,
    displacement: i32,
) -> ConditionAt {
    let near = &before[before.len().saturating_sub(NEAR)..];
    let mut factory = InstructionInfoFactory::new();
    let sets = |i: &Instruction| {
        i.flow_control() == FlowControl::Next && writes(&mut factory, i, register)
    };
    let set = near.iter().rposition(sets);
    let exits = exits_of(body);
    let guard =
        near.iter().rposition(|i| jump_target(i).is_some_and(|target| exits.contains(&target)));
    match set.map(|at| &near[at]) {
        Some(set) if set.mnemonic() == Mnemonic::Lea && set.is_ip_rel_memory_operand() => {
            let address = set.ip_rel_memory_address();
            ConditionAt::Address(address.wrapping_add_signed(i64::from(displacement)))
        }
        _ if set.is_some() && set > guard && guard.is_some() => ConditionAt::Unknown,
        _ => ConditionAt::Register(Gpr(register.number() as u8), displacement),
    }
}

/// Do calls leave this register as it was?
fn lasts(register: Register) -> bool {
    matches!(
        register,
        Register::RBX
            | Register::RBP
            | Register::RSP
            | Register::R12
            | Register::R13
            | Register::R14
            | Register::R15
    )
}

fn writes(factory: &mut InstructionInfoFactory, instruction: &Instruction, of: Register) -> bool {
    factory
        .info(instruction)
        .used_registers()
        .iter()
        .any(|used| used.register().full_register() == of && is_write(used.access()))
}

fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn is_read(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// The loads of a loop that does nothing but read and test: no writes to memory, no calls but to
/// functions that yield, and no register carried from one round to the next, so that only a change
/// of what is read can end it. Loads from the thread's own stack are none (an address is kept there, perhaps), unless there are no
/// others: then somebody else has been lent what is waited for.
fn spin_reads(body: &[Instruction], callee: &impl Fn(CallTarget) -> Callee) -> Vec<u64> {
    let mut factory = InstructionInfoFactory::new();
    let (mut loads, mut own_loads) = (Vec::new(), Vec::new());
    let mut written: Vec<Register> = Vec::new();
    let mut carried: Vec<Register> = Vec::new();
    let mut leaves = false;
    for instruction in body {
        match instruction.flow_control() {
            FlowControl::Next | FlowControl::UnconditionalBranch => {}
            FlowControl::ConditionalBranch => leaves = true,
            FlowControl::Call | FlowControl::IndirectCall => {
                if call_target(instruction).map(callee) != Some(Callee::Pause) {
                    return Vec::new();
                }
                // What it returns is as good as read anew.
                written.extend(CALLER_SAVED);
                continue;
            }
            _ => return Vec::new(),
        }
        if instruction.mnemonic() == Mnemonic::Nop || instruction.mnemonic() == Mnemonic::Pause {
            continue;
        }
        let info = factory.info(instruction);
        for used in info.used_memory() {
            if is_write(used.access()) {
                return Vec::new();
            }
            let own = matches!(used.base().full_register(), Register::RSP | Register::RBP);
            if is_read(used.access()) {
                if own { &mut own_loads } else { &mut loads }.push(instruction.ip());
            }
        }
        for used in info.used_registers().iter().filter(|used| used.register().is_gpr()) {
            let register = used.register().full_register();
            // `xor eax, eax` reads nothing.
            let clears = matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
                && instruction.op0_kind() == OpKind::Register
                && instruction.op1_kind() == OpKind::Register
                && instruction.op0_register() == instruction.op1_register();
            if is_read(used.access()) && !clears && !written.contains(&register) {
                carried.push(register);
            }
        }
        for used in info.used_registers() {
            if is_write(used.access()) {
                written.push(used.register().full_register());
            }
        }
    }
    let changes = |register: &Register| written.contains(register);
    if !leaves || carried.iter().any(changes) {
        return Vec::new();
    }
    if loads.is_empty() { own_loads } else { loads }
}

/// The loads of a test that compilers put before a loop to save its first round: it jumps to where
/// the loop exits to, or over a jump that does, and reads what the loop reads.
fn guard_reads(before: &[Instruction], body: &[Instruction], loads: &[u64]) -> Vec<u64> {
    /// A load, what is done with it, a test, the jump.
    const LONGEST: usize = 8;
    let exits = exits_of(body);
    let same = |a: &Instruction, b: &Instruction| {
        (a.memory_base(), a.memory_index(), a.memory_displacement64(), a.segment_prefix())
            == (b.memory_base(), b.memory_index(), b.memory_displacement64(), b.segment_prefix())
    };
    let recent = before.len().saturating_sub(LONGEST);
    let recent = &before[recent..];
    let Some(guard) =
        recent.iter().rposition(|i| jump_target(i).is_some_and(|target| exits.contains(&target)))
    else {
        return Vec::new();
    };
    let reads = body.iter().filter(|i| loads.contains(&i.ip()));
    let reads: Vec<&Instruction> = reads.collect();
    recent[..guard]
        .iter()
        .rev()
        .take_while(|i| matches!(i.flow_control(), FlowControl::Next))
        .filter(|i| reads.iter().any(|read| same(i, read)) && is_load(i))
        .map(|i| i.ip())
        .collect()
}

fn is_load(instruction: &Instruction) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let memory = factory.info(instruction).used_memory();
    !memory.is_empty() && memory.iter().all(|used| !is_write(used.access()))
}

const CALLER_SAVED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
