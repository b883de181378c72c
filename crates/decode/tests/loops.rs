//! Loops that wait: code as compilers write it, around calls at fixed distances.

mod common;

use common::{IP, hex};
use raddle_decode::{CallTarget, Callee, ConditionAt, Gpr, Loops, WaitExit, loops};
use std::collections::BTreeSet;

/// What the programs call.
const WAIT: u64 = IP + 0x1000;
const WRAPPER: u64 = IP + 0x2000;
const YIELD: u64 = IP + 0x3000;

/// Assembles a program: instructions with their bytes, or `FILL` and a number of `nop`s.
fn assemble(program: &[(&str, &str)]) -> Vec<u8> {
    let bytes = |(text, bytes): &(&str, &str)| match *text {
        "FILL" => vec![0x90; bytes.parse().expect("a number")],
        _ => hex(bytes),
    };
    program.iter().flat_map(bytes).collect()
}

fn find(program: &[(&str, &str)]) -> Loops {
    find_in(program, &BTreeSet::new())
}

fn find_in(program: &[(&str, &str)], starts: &BTreeSet<u64>) -> Loops {
    loops(&assemble(program), IP, starts, |target| match target {
        CallTarget::Code(WAIT) => Callee::Wait,
        CallTarget::Code(WRAPPER) => Callee::Wrapper,
        CallTarget::Code(YIELD) => Callee::Pause,
        _ => Callee::Other,
    })
}

fn exits(program: &[(&str, &str)]) -> Vec<(u64, ConditionAt)> {
    find(program).exits.iter().map(|WaitExit { at, condition }| (at - IP, *condition)).collect()
}

fn spins(program: &[(&str, &str)]) -> Vec<u64> {
    find(program).spin_reads.iter().map(|at| at - IP).collect()
}

const RBX: Gpr = Gpr(3);
const RBP: Gpr = Gpr(5);
const R12: Gpr = Gpr(12);

#[test]
fn the_exit_of_a_loop_around_a_wait() {
    // Where the condition is: relative to the code, and therefore known.
    assert_eq!(exits(UNOPTIMISED), [(0x1f, ConditionAt::Address(IP + 0x10 + 0x2f40))]);
    assert_eq!(exits(BY_WAY_OF_RAX), [(0x16, ConditionAt::Address(IP + 7 + 0x2f40))]);
    // In an object: by a register that lasts. The test before the loop jumps to the same place.
    assert_eq!(exits(GUARDED), [(0x20, ConditionAt::Register(RBX, 0x28))]);
    assert_eq!(exits(TESTED_FIRST), [(0x15, ConditionAt::Register(R12, 0))]);
}

/// The test after the wait goes through a list, behind the first jump back; who finds something without a
/// wait comes to where the jump at its end leads.
#[test]
fn a_test_may_go_on_behind_the_jump_back() {
    let condition = ConditionAt::Register(R12, 0);
    assert_eq!(exits(SEARCHED), [(0x2d, condition), (0x2f, condition)]);
}

/// The test before the loop has its own way out, which joins the loop's a little later.
#[test]
fn a_loop_may_be_passed_over_by_a_copy_of_its_exit() {
    let condition = ConditionAt::Register(RBP, 0);
    let copy = (0x33, ConditionAt::Unknown);
    assert_eq!(exits(COPIED), [(0x26, condition), (0x32, condition), copy]);
}

#[test]
fn loops_of_any_size_and_all_their_exits() {
    let condition = ConditionAt::Register(RBX, 0);
    assert_eq!(exits(LARGE), [(0x149, condition), (0x14a, condition)]);
}

#[test]
fn a_condition_that_changes_in_the_loop_is_unknown() {
    assert_eq!(exits(CHANGING), [(0x11, ConditionAt::Unknown)]);
}

#[test]
fn a_wrapper_waits_for_it_knows_what() {
    assert_eq!(exits(WRAPPED), [(0x17, ConditionAt::Unknown)]);
}

/// What is set between the test that saves the first round and the loop is not set when the loop is
/// passed over.
#[test]
fn a_register_that_only_the_loop_needs() {
    assert_eq!(exits(SET_BEHIND_THE_TEST), [(0x1f, ConditionAt::Address(IP + 0x11 + 0x2f40))]);
    assert_eq!(exits(LOADED_BEHIND_THE_TEST), [(0x1c, ConditionAt::Unknown)]);
}

/// The worker's loop around it is none that waits.
#[test]
fn a_wait_belongs_to_the_smallest_loop_around_it() {
    assert_eq!(exits(NESTED), [(0x16, ConditionAt::Register(R12, 0))]);
}

#[test]
fn a_wait_without_a_loop_makes_its_function_a_wrapper() {
    let found = find(BARE_WAIT);
    assert_eq!((found.exits.len(), found.waits_outside), (0, vec![IP + 1]));
    assert!(find(GUARDED).waits_outside.is_empty());
}

/// The jump goes to a part of the function that the compiler has put before it.
#[test]
fn a_loop_lies_within_one_function() {
    let starts = BTreeSet::from([IP, IP + 0xa]);
    assert_eq!(find_in(GUARDED, &starts).exits.len(), 1);
    let starts = BTreeSet::from([IP, IP + 0xd]);
    let found = find_in(GUARDED, &starts);
    assert_eq!((found.exits.len(), found.waits_outside.len()), (0, 1));
}

#[test]
fn loops_that_only_read_spin() {
    assert_eq!(spins(SPIN), [0]);
    assert_eq!(spins(SPIN_COMPARE), [2]);
    assert_eq!(spins(SPIN_YIELD), [0xc]);
    // The pointer is the thread's own; what it points to is waited for.
    assert_eq!(spins(SPIN_POINTER), [4]);
    assert_eq!(spins(SPIN_TWO), [0, 0xa]);
    // Nothing else is read: somebody was lent it.
    assert_eq!(spins(SPIN_LENT), [0]);
}

/// The test before the loop waits as well; another load there does not.
#[test]
fn the_test_that_saves_the_first_round_spins_too() {
    assert_eq!(spins(SPIN_GUARDED), [7, 0x16]);
}

/// Each would end, or do something, without anybody else's help.
#[test]
fn other_loops_do_not_spin() {
    for (what, program) in [
        ("counts its rounds", COUNTING),
        ("walks through an array", ARRAY),
        ("adds up", SUMMING),
        ("walks along a list", LIST),
        ("writes memory", STORING),
        ("calls who knows what", CALLING),
        ("never ends", ENDLESS),
        ("jumps to itself", ITSELF),
        ("waits for a condition", UNOPTIMISED),
    ] {
        assert_eq!(spins(program), [], "{what}");
    }
}

#[test]
fn no_bytes_upset_it() {
    for length in 0..64_u64 {
        let bytes: Vec<u8> =
            (0..length).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u8).collect();
        loops(&bytes, IP, &BTreeSet::new(), |_| Callee::Wait);
    }
}

/// `while (lent) sched_yield();` of a local variable that somebody else takes down.
const SPIN_LENT: &[(&str, &str)] = &[
    ("mov rax, [rsp+8]", "48 8b 44 24 08"),
    ("test rax, rax", "48 85 c0"),
    ("jne 0", "75 f6"),
    ("ret", "c3"),
];

const UNOPTIMISED: &[(&str, &str)] = &[
    ("0x00 jmp 401015", "eb 13"),
    ("0x02 lea rsi,[rip+0x2f00]", "48 8d 35 00 2f 00 00"),
    ("0x09 lea rdi,[rip+0x2f40]", "48 8d 3d 40 2f 00 00"),
    ("0x10 call 402000", "e8 eb 0f 00 00"),
    ("0x15 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x1b test eax,eax", "85 c0"),
    ("0x1d je 401002", "74 e3"),
    ("0x1f lea rdi,[rip+0x2f00]", "48 8d 3d 00 2f 00 00"),
];
const BY_WAY_OF_RAX: &[(&str, &str)] = &[
    ("0x00 lea rax,[rip+0x2f40]", "48 8d 05 40 2f 00 00"),
    ("0x07 mov rdi,rax", "48 89 c7"),
    ("0x0a call 402000", "e8 f1 0f 00 00"),
    ("0x0f cmp DWORD PTR [rbx+0x8],0x0", "83 7b 08 00"),
    ("0x13 nop", "90"),
    ("0x14 je 401000", "74 ea"),
    ("0x16 ret", "c3"),
];
const GUARDED: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 test eax,eax", "85 c0"),
    ("0x08 jne 401020", "75 16"),
    ("0x0a mov rsi,rbp", "48 89 ee"),
    ("0x0d lea rdi,[rbx+0x28]", "48 8d 7b 28"),
    ("0x11 call 402000", "e8 ea 0f 00 00"),
    ("0x16 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x1c test eax,eax", "85 c0"),
    ("0x1e je 40100a", "74 ea"),
    ("0x20 mov rdi,rbp", "48 89 ef"),
];
const SET_BEHIND_THE_TEST: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 test eax,eax", "85 c0"),
    ("0x08 jne 40101f", "75 15"),
    ("0x0a lea rbx,[rip+0x2f40]", "48 8d 1d 40 2f 00 00"),
    ("0x11 mov rdi,rbx", "48 89 df"),
    ("0x14 call 402000", "e8 e7 0f 00 00"),
    ("0x19 cmp DWORD PTR [rbp+0x0],0x0", "83 7d 00 00"),
    ("0x1d je 401011", "74 f2"),
    ("0x1f ret", "c3"),
];
const LOADED_BEHIND_THE_TEST: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 test eax,eax", "85 c0"),
    ("0x08 jne 40101c", "75 12"),
    ("0x0a mov rbx,QWORD PTR [rbp+0x8]", "48 8b 5d 08"),
    ("0x0e mov rdi,rbx", "48 89 df"),
    ("0x11 call 402000", "e8 ea 0f 00 00"),
    ("0x16 cmp DWORD PTR [rbp+0x0],0x0", "83 7d 00 00"),
    ("0x1a je 40100e", "74 f2"),
    ("0x1c ret", "c3"),
];
const TESTED_FIRST: &[(&str, &str)] = &[
    ("0x00 cmp DWORD PTR [r14+0x8],0x0", "41 83 7e 08 00"),
    ("0x05 jne 401015", "75 0e"),
    ("0x07 mov rdi,r12", "4c 89 e7"),
    ("0x0a mov rsi,r13", "4c 89 ee"),
    ("0x0d call 402000", "e8 ee 0f 00 00"),
    ("0x12 jmp 401000", "eb ec"),
    ("0x14 nop", "90"),
    ("0x15 mov rdi,r13", "4c 89 ef"),
];
const LARGE: &[(&str, &str)] = &[
    ("0x00 mov rdi,rbx", "48 89 df"),
    ("0x03 call 402000", "e8 f8 0f 00 00"),
    ("0x08 test eax,eax", "85 c0"),
    ("0x0a jne 40114a", "0f 85 3a 01 00 00"),
    // 300 bytes more, at 0x10
    ("FILL", "300"),
    ("0x13c cmp DWORD PTR [rip+0x2e00],0x0", "83 3d 00 2e 00 00 00"),
    ("0x143 je 401000", "0f 84 b7 fe ff ff"),
    ("0x149 ret", "c3"),
    ("0x14a ret", "c3"),
];
const CHANGING: &[(&str, &str)] = &[
    ("0x00 mov rdi,QWORD PTR [rbx]", "48 8b 3b"),
    ("0x03 call 402000", "e8 f8 0f 00 00"),
    ("0x08 mov rbx,QWORD PTR [rbx+0x8]", "48 8b 5b 08"),
    ("0x0c test rbx,rbx", "48 85 db"),
    ("0x0f jne 401000", "75 ef"),
    ("0x11 ret", "c3"),
];
const WRAPPED: &[(&str, &str)] = &[
    ("0x00 jmp 40100e", "eb 0c"),
    ("0x02 lea rdi,[rip+0x2f40]", "48 8d 3d 40 2f 00 00"),
    ("0x09 call 403000", "e8 f2 1f 00 00"),
    ("0x0e cmp DWORD PTR [rip+0x2e00],0x0", "83 3d 00 2e 00 00 00"),
    ("0x15 je 401002", "74 eb"),
    ("0x17 ret", "c3"),
];
const SEARCHED: &[(&str, &str)] = &[
    ("0x00 cmp DWORD PTR [rbx],0x0", "83 3b 00"),
    ("0x03 je 40102d", "74 28"),
    ("0x05 mov rsi,QWORD PTR [rbx+0x28]", "48 8b 73 28"),
    ("0x09 mov rdi,r12", "4c 89 e7"),
    ("0x0c call 402000", "e8 ef 0f 00 00"),
    ("0x11 mov edx,DWORD PTR [rbx+0x18]", "8b 53 18"),
    ("0x14 test edx,edx", "85 d2"),
    ("0x16 jle 401000", "7e e8"),
    ("0x18 xor eax,eax", "31 c0"),
    ("0x1a jmp 401025", "eb 09"),
    ("0x1c add rax,0x1", "48 83 c0 01"),
    ("0x20 cmp rsi,rax", "48 39 c6"),
    ("0x23 je 401000", "74 db"),
    ("0x25 cmp rcx,QWORD PTR [rbx+rax*8]", "48 3b 0c c3"),
    ("0x29 jne 40101c", "75 f1"),
    ("0x2b jmp 40102f", "eb 02"),
    ("0x2d ret", "c3"),
    ("0x2e nop", "90"),
    ("0x2f ret", "c3"),
];
const COPIED: &[(&str, &str)] = &[
    ("0x00 mov rcx,QWORD PTR [r14+0x10]", "49 8b 4e 10"),
    ("0x04 cmp r12,rcx", "49 39 cc"),
    ("0x07 jne 401033", "75 2a"),
    ("0x09 mov QWORD PTR [rsp],rcx", "48 89 0c 24"),
    ("0x0d jmp 401020", "eb 11"),
    ("0x0f mov rdi,rbp", "48 89 ef"),
    ("0x12 call 402000", "e8 e9 0f 00 00"),
    ("0x17 mov rax,QWORD PTR [r14+0x10]", "49 8b 46 10"),
    ("0x1b cmp rax,r12", "4c 39 e0"),
    ("0x1e jne 401032", "75 12"),
    ("0x20 cmp DWORD PTR [r14],0x1", "41 83 3e 01"),
    ("0x24 je 40100f", "74 e9"),
    ("0x26 mov r12,QWORD PTR [rsp]", "4c 8b 24 24"),
    ("0x2a mov rdi,rbx", "48 89 df"),
    ("0x2d call 405000", "e8 ce 3f 00 00"),
    ("0x32 ret", "c3"),
    ("0x33 mov r12,rcx", "49 89 cc"),
    ("0x36 jmp 40102a", "eb f2"),
];
const NESTED: &[(&str, &str)] = &[
    ("0x00 call 405000", "e8 fb 3f 00 00"),
    ("0x05 jmp 40100f", "eb 08"),
    ("0x07 mov rdi,r12", "4c 89 e7"),
    ("0x0a call 402000", "e8 f1 0f 00 00"),
    ("0x0f cmp QWORD PTR [r13+0x0],0x0", "49 83 7d 00 00"),
    ("0x14 je 401007", "74 f1"),
    ("0x16 call 405000", "e8 e5 3f 00 00"),
    ("0x1b test eax,eax", "85 c0"),
    ("0x1d jne 401000", "75 e1"),
    ("0x1f ret", "c3"),
];
const BARE_WAIT: &[(&str, &str)] = &[
    ("0x00 push rbx", "53"),
    ("0x01 call 402000", "e8 fa 0f 00 00"),
    ("0x06 pop rbx", "5b"),
    ("0x07 ret", "c3"),
];
const SPIN: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 test eax,eax", "85 c0"),
    ("0x08 je 401000", "74 f6"),
    ("0x0a ret", "c3"),
];
const SPIN_GUARDED: &[(&str, &str)] = &[
    ("0x00 mov rdx,QWORD PTR [rip+0x2e08]", "48 8b 15 08 2e 00 00"),
    ("0x07 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x0d test eax,eax", "85 c0"),
    ("0x0f jne 401020", "75 0f"),
    ("0x11 call 404000", "e8 ea 2f 00 00"),
    ("0x16 mov eax,DWORD PTR [rip+0x2df1]", "8b 05 f1 2d 00 00"),
    ("0x1c test eax,eax", "85 c0"),
    ("0x1e je 401011", "74 f1"),
    ("0x20 ret", "c3"),
];
const SPIN_COMPARE: &[(&str, &str)] = &[
    ("0x00 pause", "f3 90"),
    ("0x02 cmp DWORD PTR [rbx+0x4],0x3", "83 7b 04 03"),
    ("0x06 jne 401000", "75 f8"),
    ("0x08 ret", "c3"),
];
const SPIN_YIELD: &[(&str, &str)] = &[
    ("0x00 jmp 40100c", "eb 0a"),
    ("0x02 mov edi,0x1", "bf 01 00 00 00"),
    ("0x07 call 404000", "e8 f4 2f 00 00"),
    ("0x0c mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x12 test eax,eax", "85 c0"),
    ("0x14 je 401002", "74 ec"),
    ("0x16 ret", "c3"),
];
const SPIN_POINTER: &[(&str, &str)] = &[
    ("0x00 mov rax,QWORD PTR [rbp-0x8]", "48 8b 45 f8"),
    ("0x04 movzx eax,BYTE PTR [rax+0x10]", "0f b6 40 10"),
    ("0x08 xor eax,0x1", "83 f0 01"),
    ("0x0b test al,al", "84 c0"),
    ("0x0d jne 401000", "75 f1"),
    ("0x0f ret", "c3"),
];
const SPIN_TWO: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 test eax,eax", "85 c0"),
    ("0x08 jne 401013", "75 09"),
    ("0x0a mov rax,QWORD PTR [r12]", "49 8b 04 24"),
    ("0x0e test rax,rax", "48 85 c0"),
    ("0x11 je 401000", "74 ed"),
    ("0x13 ret", "c3"),
];
const COUNTING: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 test eax,eax", "85 c0"),
    ("0x08 jne 40100f", "75 05"),
    ("0x0a sub ecx,0x1", "83 e9 01"),
    ("0x0d jne 401000", "75 f1"),
    ("0x0f ret", "c3"),
];
const ARRAY: &[(&str, &str)] = &[
    ("0x00 cmp DWORD PTR [rdi],0x0", "83 3f 00"),
    ("0x03 lea rdi,[rdi+0x4]", "48 8d 7f 04"),
    ("0x07 jne 401000", "75 f7"),
    ("0x09 ret", "c3"),
];
const SUMMING: &[(&str, &str)] = &[
    ("0x00 add eax,DWORD PTR [rdi]", "03 07"),
    ("0x02 cmp eax,0x64", "83 f8 64"),
    ("0x05 jl 401000", "7c f9"),
    ("0x07 ret", "c3"),
];
const LIST: &[(&str, &str)] = &[
    ("0x00 mov rdi,QWORD PTR [rdi]", "48 8b 3f"),
    ("0x03 test rdi,rdi", "48 85 ff"),
    ("0x06 jne 401000", "75 f8"),
    ("0x08 ret", "c3"),
];
const STORING: &[(&str, &str)] = &[
    ("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x06 mov DWORD PTR [rbx],eax", "89 03"),
    ("0x08 test eax,eax", "85 c0"),
    ("0x0a je 401000", "74 f4"),
    ("0x0c ret", "c3"),
];
const CALLING: &[(&str, &str)] = &[
    ("0x00 call 405000", "e8 fb 3f 00 00"),
    ("0x05 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"),
    ("0x0b test eax,eax", "85 c0"),
    ("0x0d je 401000", "74 f1"),
    ("0x0f ret", "c3"),
];
const ITSELF: &[(&str, &str)] = &[("0x00 jmp 401000", "eb fe"), ("0x02 ret", "c3")];
const ENDLESS: &[(&str, &str)] =
    &[("0x00 mov eax,DWORD PTR [rip+0x2e00]", "8b 05 00 2e 00 00"), ("0x06 jmp 401000", "eb f8")];
