//! The lean call: from inserted code into Rust and back, for a few nanoseconds.
//!
//! Inserted code calls an entry with the application's registers live and its stack pointer moved
//! below the red zone. The trampoline goes over to a stack of ours, saves what Rust may change
//! (integer registers, flags, xmm0-15), puts our own `fs` in place of the target's, so that
//! thread-local storage and the allocator are ours, and calls the handler. Upper vector halves are
//! safe because the probe uses SSE only and brings its own `memcpy` and kin ([`crate::libc_free`]).
//!
//! The code below is a template: every `gs` displacement is `PLACEHOLDER + 8 * slot` and is set
//! right in the copy that [`install`] makes.

use crate::frames;
use crate::instrument::handlers::Number;
use crate::memory::environment;
use crate::memory::quick::{Layout, ROW_BITS, Row, SPREAD};
use crate::thread::ThreadState;
use raddle_dynamorio::block::CodeAddress;
use raddle_dynamorio::process;
use raddle_dynamorio::slots::{Slot, Slots};
use std::mem::offset_of;

/// The slots and what they hold.
pub mod slot {
    use super::Slot;

    /// Address of the thread's [`super::ThreadState`].
    pub const THREAD: Slot = Slot(0);
    // Slots 1 and 2 hold rax and rsp while a trampoline runs; only the template names them.

    /// Top of the thread's stack for Rust code.
    pub const STACK: Slot = Slot(3);
    /// Address of the handler table.
    pub const HANDLERS: Slot = Slot(4);
    /// Our own `fs` base in this thread.
    pub const PRIVATE_FS: Slot = Slot(5);
    /// Argument of a handler: an address.
    pub const ADDRESS: Slot = Slot(6);
    /// Argument of a handler: a number (site, hook).
    pub const NUMBER: Slot = Slot(7);
    /// rax at a return site.
    pub const RESULT: Slot = Slot(8);
    /// The stack pointer at which the innermost hooked call will have returned, or the innermost known
    /// frame will have been left, whichever is lower; all ones if there is neither.
    pub const PENDING: Slot = Slot(9);
    /// Not zero inside an opaque hooked function.
    pub const OPAQUE: Slot = Slot(10);
    /// Address of the thread's block counters.
    pub const COUNTERS: Slot = Slot(11);
    /// A block that must be built anew; zero if none.
    pub const REBUILD: Slot = Slot(12);
    /// Address of the thread's [`crate::memory::quick::Layout`].
    pub const QUICK: Slot = Slot(13);
    /// rcx, rdx and the flags while a quick path runs.
    pub const QUICK_RCX: Slot = Slot(14);
    pub const QUICK_RDX: Slot = Slot(15);
    pub const QUICK_FLAGS: Slot = Slot(16);
    /// The thread's current segment as a cell, twice (fast detector).
    pub const SEGMENT: Slot = Slot(17);
    /// Where the cells of the thread's writes are, and those of its reads.
    pub const WRITE_KEY: Slot = Slot(18);
    pub const READ_KEY: Slot = Slot(19);
    /// Address of the thread's [`crate::middle::Middle`].
    pub const MIDDLE: Slot = Slot(20);
    /// Where the middle path goes when it is not sure: the entry for accesses.
    pub const ACCESS_ENTRY: Slot = Slot(21);
    /// Not zero until the thread has set its signal mask for the first time.
    pub const NEWBORN: Slot = Slot(22);
    /// Not zero while threads run in turn and there are several.
    pub const CONTROLLED: Slot = Slot(28);
    /// Branches the thread may make before its next scheduling point.
    pub const BUDGET: Slot = Slot(29);
    /// Not zero after a system call that is to be made again.
    pub const AGAIN: Slot = Slot(27);
    /// What an instruction is given in the processor's stead, by its registers.
    pub const GIVEN: [Slot; 4] = [Slot(23), Slot(24), Slot(25), Slot(26)];
    /// Address of the thread's [`crate::frames::Header`].
    pub const FRAMES: Slot = Slot(30);
    /// Where from there its innermost known frame is.
    pub const TOP: Slot = Slot(31);
    /// How a cell differs from the current segment, while inserted code looks closer.
    pub const DIFFERENCE: Slot = Slot(32);
    /// Where what is known of the target's pages is, a byte each.
    pub const PAGES: Slot = Slot(33);
    /// Not zero if the processor has AVX-512 and says whether upper halves of vector registers are in use.
    pub const WIDE: Slot = Slot(34);
    /// How many.
    pub const COUNT: u32 = 35;
}

/// The application's registers as a handler sees them.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    pub vectors: [u128; 16],
    pub r12: u64,
    /// The stack pointer before the call sequence.
    pub rsp: u64,
    pub rbx: u64,
    pub rbp: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub flags: u64,
}

impl Frame {
    /// The integer arguments of a call, at its entry.
    pub fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }

    /// The direction flag: string instructions run downwards.
    pub fn backwards(&self) -> bool {
        self.flags & (1 << 10) != 0
    }

    /// The zero flag.
    pub fn zero(&self) -> bool {
        self.flags & (1 << 6) != 0
    }
}

/// What inserted code calls.
pub type Handler = extern "C" fn(&mut Frame, &mut ThreadState);

const PLACEHOLDER: u32 = 0x5A5A_0000;
/// How many entries the template has; each is [`ENTRY_SIZE`] bytes.
pub const ENTRIES: usize = 9;
const ENTRY_SIZE: usize = 32;

core::arch::global_asm!(
    r#"
.macro raddle_entry number
 .p2align 5
 mov qword ptr gs:[0x5A5A0008], rax
 mov eax, \number
 jmp 9f
.endm
 .p2align 6
.globl raddle_lean_begin
.hidden raddle_lean_begin
.globl raddle_lean_end
.hidden raddle_lean_end
raddle_lean_begin:
 raddle_entry 0
 raddle_entry 1
 raddle_entry 2
 raddle_entry 3
 raddle_entry 4
 raddle_entry 5
 raddle_entry 6
 raddle_entry 7
 raddle_entry 8
 .p2align 5
9:
 mov qword ptr gs:[0x5A5A0010], rsp
 mov rsp, qword ptr gs:[0x5A5A0018]
 pushfq
 cld
 push r11
 push r10
 push r9
 push r8
 push rdi
 push rsi
 push rdx
 push rcx
 push qword ptr gs:[0x5A5A0008]
 push rbp
 push rbx
 mov rcx, qword ptr gs:[0x5A5A0010]
 lea rcx, [rcx + 136]
 push rcx
 push r12
 sub rsp, 256
 movaps [rsp], xmm0
 movaps [rsp + 16], xmm1
 movaps [rsp + 32], xmm2
 movaps [rsp + 48], xmm3
 movaps [rsp + 64], xmm4
 movaps [rsp + 80], xmm5
 movaps [rsp + 96], xmm6
 movaps [rsp + 112], xmm7
 movaps [rsp + 128], xmm8
 movaps [rsp + 144], xmm9
 movaps [rsp + 160], xmm10
 movaps [rsp + 176], xmm11
 movaps [rsp + 192], xmm12
 movaps [rsp + 208], xmm13
 movaps [rsp + 224], xmm14
 movaps [rsp + 240], xmm15
 # The engine loads the vector registers in full, which leaves their upper halves in use; until they are not, some
 # processors need 150 ns for the first instruction of ours that changes a lower half, and again after every one of the
 # application's that changes a whole. If they are all zero, they need not be in use.
 cmp qword ptr gs:[{wide}], 0
 je 7f
 mov ebx, eax
 mov ecx, 1
 xgetbv
 test eax, 0x24
 mov eax, ebx
 jz 7f
 kmovq rbx, k1
 vmovups [rsp - 64], zmm0
 vporq zmm0, zmm0, zmm1
 vporq zmm0, zmm0, zmm2
 vporq zmm0, zmm0, zmm3
 vporq zmm0, zmm0, zmm4
 vporq zmm0, zmm0, zmm5
 vporq zmm0, zmm0, zmm6
 vporq zmm0, zmm0, zmm7
 vporq zmm0, zmm0, zmm8
 vporq zmm0, zmm0, zmm9
 vporq zmm0, zmm0, zmm10
 vporq zmm0, zmm0, zmm11
 vporq zmm0, zmm0, zmm12
 vporq zmm0, zmm0, zmm13
 vporq zmm0, zmm0, zmm14
 vporq zmm0, zmm0, zmm15
 vptestmq k1, zmm0, zmm0
 kmovw ecx, k1
 kmovq k1, rbx
 test ecx, 0xfc
 jnz 6f
 vzeroupper
 movaps xmm0, [rsp]
 jmp 7f
6:
 vmovups zmm0, [rsp - 64]
7:
 rdfsbase r12
 mov rdx, qword ptr gs:[0x5A5A0028]
 wrfsbase rdx
 mov rdi, rsp
 mov rsi, qword ptr gs:[0x5A5A0000]
 mov rdx, qword ptr gs:[0x5A5A0020]
 call qword ptr [rdx + rax * 8]
 wrfsbase r12
 movaps xmm0, [rsp]
 movaps xmm1, [rsp + 16]
 movaps xmm2, [rsp + 32]
 movaps xmm3, [rsp + 48]
 movaps xmm4, [rsp + 64]
 movaps xmm5, [rsp + 80]
 movaps xmm6, [rsp + 96]
 movaps xmm7, [rsp + 112]
 movaps xmm8, [rsp + 128]
 movaps xmm9, [rsp + 144]
 movaps xmm10, [rsp + 160]
 movaps xmm11, [rsp + 176]
 movaps xmm12, [rsp + 192]
 movaps xmm13, [rsp + 208]
 movaps xmm14, [rsp + 224]
 movaps xmm15, [rsp + 240]
 add rsp, 256
 pop r12
 lea rsp, [rsp + 8]
 pop rbx
 pop rbp
 pop rax
 pop rcx
 pop rdx
 pop rsi
 pop rdi
 pop r8
 pop r9
 pop r10
 pop r11
 # Flags: popfq costs tens of cycles; unless the direction flag was set, the arithmetic flags are
 # all that can differ. OF by an addition that overflows if it was set, the others by sahf.
 bt dword ptr [rsp], 10
 jc 8f
 mov qword ptr gs:[0x5A5A0008], rax
 mov ah, byte ptr [rsp]
 bt dword ptr [rsp], 11
 setc al
 add al, 0x7f
 sahf
 mov rax, qword ptr gs:[0x5A5A0008]
 mov rsp, qword ptr gs:[0x5A5A0010]
 ret
8:
 popfq
 mov rsp, qword ptr gs:[0x5A5A0010]
 ret

# The quick paths: no stack of ours, no fs, no Rust. Three registers and the flags are used and put
# back. What they do not know goes on to the entry of the handler as if it had been called.

 .p2align 5
.globl raddle_quick_entered
.hidden raddle_quick_entered
raddle_quick_entered:
 mov qword ptr gs:[0x5A5A0008], rax
 lahf
 seto al
 mov qword ptr gs:[{flags}], rax
 mov qword ptr gs:[{rcx}], rcx
 mov qword ptr gs:[{rdx}], rdx
 # Is a pending call left behind, or this a jump out of it?
 lea rcx, [rsp + 144]
 cmp rcx, qword ptr gs:[{pending}]
 jae 7f
 # Inside a library or an allocator it does not count.
 mov eax, dword ptr gs:[{opaque}]
 dec eax
 cmp eax, 1
 jbe 6f
 # The row of the call site.
 mov rdx, qword ptr [rsp + 136]
 imul ecx, edx, {spread}
 shr ecx, {row_shift}
 shl ecx, {row_size_bits}
 mov rax, qword ptr gs:[{quick}]
 lea rcx, [rax + rcx + {rows}]
 cmp rdx, qword ptr [rcx + {returns_to}]
 jne 7f
 mov edx, dword ptr gs:[{number}]
 cmp edx, dword ptr [rcx + {site}]
 jne 7f
 mov rdx, qword ptr [rax + {table_age}]
 mov edx, dword ptr [rdx]
 cmp edx, dword ptr [rcx + {age}]
 jne 7f
 mov edx, dword ptr [rax + {idle}]
 or edx, dword ptr [rcx + {always}]
 jz 7f
 # Now and then to Rust, where it is seen that signals come.
 dec qword ptr [rax + {calls}]
 js 7f
 inc qword ptr [rcx + {entered}]
 # It is the pending call now. The row comes last: with it the frame is valid.
 mov qword ptr [rax + {arguments}], rdi
 mov qword ptr [rax + {arguments} + 8], rsi
 mov rdx, qword ptr gs:[{rdx}]
 mov qword ptr [rax + {arguments} + 16], rdx
 lea rdx, [rsp + 144]
 mov qword ptr [rax + {frame_sp}], rdx
 mov rdx, qword ptr gs:[{pending}]
 mov qword ptr [rax + {outer_pending}], rdx
 mov rdx, qword ptr gs:[{opaque}]
 mov qword ptr [rax + {outer_inside}], rdx
 mov qword ptr [rax + {frame}], rcx
 lea rdx, [rsp + 144]
 mov qword ptr gs:[{pending}], rdx
 mov qword ptr gs:[{opaque}], 1
6:
 mov rdx, qword ptr gs:[{rdx}]
 mov rcx, qword ptr gs:[{rcx}]
 mov rax, qword ptr gs:[{flags}]
 add al, 0x7f
 sahf
 mov rax, qword ptr gs:[0x5A5A0008]
 ret
7:
 mov rdx, qword ptr gs:[{rdx}]
 mov rcx, qword ptr gs:[{rcx}]
 mov rax, qword ptr gs:[{flags}]
 add al, 0x7f
 sahf
 mov rax, qword ptr gs:[0x5A5A0008]
 jmp raddle_lean_begin + {entered_entry}

# At a return site the flags are not the application's: the comparison has borrowed them.
 .p2align 5
.globl raddle_quick_returned
.hidden raddle_quick_returned
raddle_quick_returned:
 mov qword ptr gs:[0x5A5A0008], rax
 mov qword ptr gs:[{rcx}], rcx
 mov qword ptr gs:[{rdx}], rdx
 mov rax, qword ptr gs:[{quick}]
 mov rcx, qword ptr [rax + {frame}]
 test rcx, rcx
 jz raddle_frames_left
 lea rdx, [rsp + 136]
 cmp rdx, qword ptr [rax + {frame_sp}]
 jne 5f
 mov edx, dword ptr gs:[{number}]
 cmp edx, dword ptr [rcx + {return_site}]
 jne 5f
 mov edx, dword ptr gs:[{result}]
 and edx, dword ptr [rcx + {failure_bits}]
 jnz 5f
 inc qword ptr [rcx + {succeeded}]
 mov qword ptr [rax + {frame}], 0
 mov rdx, qword ptr [rax + {outer_pending}]
 mov qword ptr gs:[{pending}], rdx
 mov rdx, qword ptr [rax + {outer_inside}]
 mov qword ptr gs:[{opaque}], rdx
 mov rdx, qword ptr gs:[{rdx}]
 mov rcx, qword ptr gs:[{rcx}]
 mov rax, qword ptr gs:[0x5A5A0008]
 ret
5:
 mov rdx, qword ptr gs:[{rdx}]
 mov rcx, qword ptr gs:[{rcx}]
 mov rax, qword ptr gs:[0x5A5A0008]
 jmp raddle_lean_begin + {returned_entry}

# At a return site: the stack pointer has come up to where a known frame was left, or a hooked call is over.
# The former is done here, the latter goes on to the handler.
 .p2align 5
.globl raddle_frames_returned
.hidden raddle_frames_returned
raddle_frames_returned:
 mov qword ptr gs:[0x5A5A0008], rax
 mov qword ptr gs:[{rcx}], rcx
 mov qword ptr gs:[{rdx}], rdx
raddle_frames_left:
 mov rax, qword ptr gs:[{frames}]
 mov rcx, qword ptr gs:[{top}]
 lea rdx, [rsp + 136]
3:
 cmp qword ptr [rax + rcx + {frame_at}], rdx
 jae 4f
 sub rcx, {frame_size}
 jmp 3b
4:
 mov qword ptr gs:[{top}], rcx
 mov rcx, qword ptr [rax + rcx + {frame_at}]
 add rcx, 8
 cmp rcx, qword ptr [rax + {hooked}]
 cmova rcx, qword ptr [rax + {hooked}]
 mov qword ptr gs:[{pending}], rcx
 cmp rdx, qword ptr [rax + {hooked}]
 mov rdx, qword ptr gs:[{rdx}]
 mov rcx, qword ptr gs:[{rcx}]
 mov rax, qword ptr gs:[0x5A5A0008]
 jae raddle_lean_begin + {returned_entry}
 ret

# An access of which only Rust knows what it is, in code that opaque functions run as well: inside of one it is
# nothing. No flag is touched.
 .p2align 5
.globl raddle_guarded_access
.hidden raddle_guarded_access
raddle_guarded_access:
 mov qword ptr gs:[{rcx}], rcx
 mov ecx, dword ptr gs:[{opaque}]
 jrcxz 1f
 mov rcx, qword ptr gs:[{rcx}]
 ret
1:
 mov rcx, qword ptr gs:[{rcx}]
 jmp raddle_lean_begin + {access_entry}
raddle_lean_end:
"#,
    frames = const at(slot::FRAMES),
    top = const at(slot::TOP),
    frame_at = const offset_of!(frames::Frame, at),
    frame_size = const size_of::<frames::Frame>(),
    hooked = const offset_of!(frames::Header, hooked),
    rcx = const at(slot::QUICK_RCX),
    rdx = const at(slot::QUICK_RDX),
    flags = const at(slot::QUICK_FLAGS),
    quick = const at(slot::QUICK),
    pending = const at(slot::PENDING),
    opaque = const at(slot::OPAQUE),
    number = const at(slot::NUMBER),
    result = const at(slot::RESULT),
    wide = const at(slot::WIDE),
    spread = const SPREAD as i32,
    row_shift = const u32::BITS - ROW_BITS,
    row_size_bits = const size_of::<Row>().trailing_zeros(),
    rows = const offset_of!(Layout, rows),
    frame = const offset_of!(Layout, frame),
    frame_sp = const offset_of!(Layout, frame_sp),
    outer_pending = const offset_of!(Layout, outer_pending),
    outer_inside = const offset_of!(Layout, outer_inside),
    arguments = const offset_of!(Layout, arguments),
    always = const offset_of!(Row, always),
    idle = const offset_of!(Layout, idle),
    table_age = const offset_of!(Layout, age),
    calls = const offset_of!(Layout, calls),
    returns_to = const offset_of!(Row, returns_to),
    site = const offset_of!(Row, site),
    age = const offset_of!(Row, age),
    return_site = const offset_of!(Row, return_site),
    failure_bits = const offset_of!(Row, failure_bits),
    entered = const offset_of!(Row, entered),
    succeeded = const offset_of!(Row, succeeded),
    access_entry = const Number::Access as usize * ENTRY_SIZE,
    entered_entry = const Number::Entered as usize * ENTRY_SIZE,
    returned_entry = const Number::Returned as usize * ENTRY_SIZE,
);

/// The displacement that stands for a slot in the template.
const fn at(slot: Slot) -> u32 {
    PLACEHOLDER + 8 * slot.0
}

/// A row's address is computed by a shift.
const _: () = assert!(size_of::<Row>().is_power_of_two());

unsafe extern "C" {
    static raddle_lean_begin: u8;
    static raddle_lean_end: u8;
    static raddle_quick_entered: u8;
    static raddle_quick_returned: u8;
    static raddle_frames_returned: u8;
    static raddle_guarded_access: u8;
}

/// The installed entries, by handler number.
#[derive(Debug, Clone, Copy)]
pub struct Trampoline {
    code: CodeAddress,
}

impl Trampoline {
    /// The entry that calls the handler with this number.
    pub fn entry(&self, number: usize) -> CodeAddress {
        assert!(number < ENTRIES);
        self.code.offset(number * ENTRY_SIZE)
    }

    /// The entry that counts a hooked call, and calls the handler only if it cannot.
    pub fn quick_entered(&self) -> CodeAddress {
        self.code.offset(offset_in_template(&raw const raddle_quick_entered))
    }

    /// The entry that counts a hooked call's return likewise.
    pub fn quick_returned(&self) -> CodeAddress {
        self.code.offset(offset_in_template(&raw const raddle_quick_returned))
    }

    /// The entry for accesses that calls the handler only outside of opaque functions.
    pub fn guarded_access(&self) -> CodeAddress {
        self.code.offset(offset_in_template(&raw const raddle_guarded_access))
    }

    /// The entry that forgets the frames that were left, and calls the handler only if a hooked call is
    /// over.
    pub fn frames_returned(&self) -> CodeAddress {
        self.code.offset(offset_in_template(&raw const raddle_frames_returned))
    }
}

/// Makes the template work for these slots and places it where the code cache can call it.
pub fn install(slots: Slots) -> Result<Trampoline, &'static str> {
    if !slots.uses_gs() {
        return Err("the engine does not keep its thread block in gs");
    }
    if !can_set_fs() {
        return Err("this kernel does not let programs set the fs base (FSGSBASE, Linux 5.9)");
    }
    // One store per entry, the accesses of the common part, of the two quick paths, of the frames' and of the
    // guarded access.
    let code = place(template(), slots, ENTRIES + 12 + 21 + 14 + 10 + 4)?;
    Ok(Trampoline { code })
}

/// Copies a template to where the code cache can call it, with its slots set right. `patches` is how
/// many there must be: anything else means that the assembler chose another encoding.
pub fn place(template: &[u8], slots: Slots, patches: usize) -> Result<CodeAddress, &'static str> {
    let mut code = template.to_vec();
    let mut patched = 0;
    for at in 0..template.len().saturating_sub(3) {
        let word = u32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]]);
        if word & 0xFFFF_0000 == PLACEHOLDER && word & 0xFFFF < 8 * slot::COUNT {
            let offset = slots.offset_of(Slot((word & 0xFFFF) / 8));
            code[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            patched += 1;
        }
    }
    if patched != patches {
        return Err("hand-written code was not assembled as expected");
    }
    process::install_code(&code).ok_or("no memory for hand-written code")
}

fn template() -> &'static [u8] {
    // SAFETY: both labels delimit one stretch of our own text.
    unsafe {
        let begin = &raw const raddle_lean_begin;
        let end = &raw const raddle_lean_end;
        std::slice::from_raw_parts(begin, end.offset_from(begin) as usize)
    }
}

fn offset_in_template(label: *const u8) -> usize {
    label as usize - template().as_ptr() as usize
}

/// Does the kernel allow `wrfsbase`?
fn can_set_fs() -> bool {
    const HWCAP2_FSGSBASE: u64 = 2;
    environment::auxiliary(libc::AT_HWCAP2).is_some_and(|bits| bits & HWCAP2_FSGSBASE != 0)
}

/// Has the processor AVX-512, does `xgetbv` tell which of its state is in use, and does it matter? AMD's processors take
/// no longer when upper halves are in use; to ask them takes 20 ns.
pub fn has_wide_vectors() -> bool {
    const STATE_LEAF: u32 = 0xd;
    const TELLS_USE: u32 = 1 << 2;
    const INTEL: [u32; 3] = [0x756e_6547, 0x4965_6e69, 0x6c65_746e];
    let vendor = std::arch::x86_64::__cpuid(0);
    [vendor.ebx, vendor.edx, vendor.ecx] == INTEL
        && std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::arch::x86_64::__cpuid_count(STATE_LEAF, 1).eax & TELLS_USE != 0
}

/// The current `fs` base: inside an engine callback, our own.
pub fn current_fs() -> u64 {
    let base: u64;
    // SAFETY: reads a register; `install` has checked that the instruction is allowed.
    unsafe { core::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack)) };
    base
}
