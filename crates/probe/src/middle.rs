//! The middle path: what happens, as a rule, when inserted code has found news.
//!
//! Most accesses that are new to their segment need no judgement: the stack is one seen before, what the
//! own cell held is stood for by the new access, and whoever else touched the line did so before, or
//! holds the same lock. This path, in assembly because it must not touch a vector register or a stack,
//! does for them exactly what `FastHybrid::access` does: stamp, fence, look. Anything it is not sure of
//! goes to Rust: before the stamp as an ordinary access, after it to have the others looked at again.
//!
//! It serves aligned accesses of four and eight bytes. Called with the flags ours, the address and the
//! site in their slots; keeps every register.

use crate::memory::Reservation;
use crate::memory::shadow::Shadow;
use crate::trampoline;
use raddle_analyse::fast::access::AccessId;
use raddle_analyse::fast::{SLOTS, Side, Standing};
use raddle_dynamorio::block::CodeAddress;
use raddle_dynamorio::slots::Slots;

/// Slots that [`Middle`] has room for.
const ROOM: usize = 32;
/// Frames that a row has room for; a deeper stack is left to Rust.
const FRAMES: usize = 30;
/// Rows of a thread, a power of two that the assembly knows.
const ROWS: usize = 1024;
/// No lock set is like this.
const UNLIKE: u32 = u32::MAX;

/// What the path knows of its thread. The assembly knows the offsets.
#[derive(Debug)]
#[repr(C)]
pub struct Middle {
    segment: u64,
    cells: [u64; 2],
    accesses: [u64; 2],
    sharers: u64,
    rows: u64,
    own: u32,
    locks: u32,
    alike_table: u64,
    /// Which lock sets the thread's own excludes for being alike; [`UNLIKE`] if none.
    alike: u32,
    no_locks: u32,
    saved: [u64; 7],
    /// The access that was stamped.
    stamped: u32,
    /// It is to be looked at again.
    look: u32,
    /// How many were.
    pub count: u64,
    limits: [u32; ROOM],
    cell_keys: [[u64; 2]; ROOM],
    access_keys: [[u64; 2]; ROOM],
    /// By slot, the table of lock sets held.
    lock_tables: [u64; ROOM],
    /// The own one, and the thread's stack.
    own_locks: u64,
    stack: (u64, u64),
    memory: Reservation,
    /// Never written.
    empty: Reservation,
}

const _: () = {
    assert!(std::mem::offset_of!(Middle, sharers) == 0x28);
    assert!(std::mem::offset_of!(Middle, own) == 0x38);
    assert!(std::mem::offset_of!(Middle, alike_table) == 0x40);
    assert!(std::mem::offset_of!(Middle, saved) == 0x50);
    assert!(std::mem::offset_of!(Middle, stamped) == 0x88);
    assert!(std::mem::offset_of!(Middle, limits) == 0x98);
    assert!(std::mem::offset_of!(Middle, cell_keys) == 0x118);
    assert!(std::mem::offset_of!(Middle, access_keys) == 0x318);
    assert!(std::mem::offset_of!(Middle, lock_tables) == 0x518);
    assert!(std::mem::offset_of!(Middle, own_locks) == 0x618);
    assert!(std::mem::offset_of!(Middle, stack) == 0x620);
    assert!(std::mem::offset_of!(Row, frames) == 32);
    assert!(SLOTS <= ROOM && std::mem::size_of::<Row>() == 512);
};

/// An access described before, as the assembly compares it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Row {
    sp: u64,
    site: u32,
    access: AccessId,
    depth: u32,
    unused: [u32; 3],
    frames: [(u64, u64); FRAMES],
}

impl Middle {
    /// For a new thread.
    pub fn new(shadow: &Shadow) -> Option<Box<Middle>> {
        let memory = Reservation::new(ROWS * std::mem::size_of::<Row>())?;
        let keys = |offset: usize| {
            std::array::from_fn(|slot| {
                [0, 1].map(|side| {
                    if slot < shadow.slots() { shadow.region(slot, offset + side) } else { 0 }
                })
            })
        };
        Some(Box::new(Middle {
            segment: 0,
            cells: [0; 2],
            accesses: [0; 2],
            sharers: shadow.sharers_base(),
            rows: memory.start(),
            own: 0,
            locks: 0,
            alike_table: shadow.alike_table(),
            alike: UNLIKE,
            no_locks: 1,
            saved: [0; 7],
            stamped: 0,
            look: 0,
            count: 0,
            limits: [0; ROOM],
            cell_keys: keys(0),
            access_keys: keys(2),
            lock_tables: std::array::from_fn(|slot| {
                if slot < shadow.slots() { shadow.lock_table(slot) } else { 0 }
            }),
            own_locks: 0,
            stack: (0, 0),
            memory,
            empty: Reservation::new(ROWS * std::mem::size_of::<Row>())?,
        }))
    }

    /// Takes over where the thread stands; `alike` is what its lock set excludes for being alike.
    pub fn load(&mut self, standing: &Standing, alike: Option<u32>) {
        let slot = standing.slot();
        self.segment = standing.current();
        self.cells = self.cell_keys[slot];
        self.accesses = self.access_keys[slot];
        self.own_locks = self.lock_tables[slot];
        self.own = 1 << slot;
        self.locks = standing.locks().0;
        self.no_locks = u32::from(self.locks == 0);
        self.alike = alike.unwrap_or(UNLIKE);
        // Nothing is found in an empty table, so everything goes to Rust, which knows what to do.
        let muted = standing.is_muted(Side::Read) || standing.is_muted(Side::Write);
        self.rows = if muted { self.empty.start() } else { self.memory.start() };
        for (slot, limit) in self.limits.iter_mut().enumerate().take(SLOTS) {
            *limit = standing.weak(slot) << 4 | 0xf;
        }
    }

    /// The thread's stack is here.
    pub fn set_stack(&mut self, region: (u64, u64)) {
        self.stack = region;
    }

    /// Where the cells of the own slot are.
    pub fn key(&self, side: Side) -> u64 {
        self.cells[side as usize]
    }

    /// The access that was stamped, if the others are to be looked at again. Asked once.
    pub fn take_stamped(&mut self) -> Option<AccessId> {
        (std::mem::take(&mut self.look) == 1).then_some(AccessId(self.stamped))
    }

    /// Remembers a described access, if its stack is not too deep.
    pub fn remember(&mut self, site: u32, sp: u64, access: AccessId, frames: &[(u64, u64)]) {
        if frames.len() > FRAMES {
            return;
        }
        let depth = frames.len() as u32;
        let mut row = Row { site, sp, access, depth, frames: [(0, 0); FRAMES], unused: [0; 3] };
        row.frames[..frames.len()].copy_from_slice(frames);
        self.memory.write(row_of(site, sp), row);
    }
}

/// The row of an access; the assembly computes the same.
fn row_of(site: u32, sp: u64) -> usize {
    let mixed = site.wrapping_mul(0x9E37_79B1) ^ (sp as u32 >> 4);
    (mixed.wrapping_mul(0x85EB_CA6B) >> 22) as usize
}

// Registers: rax Middle, rcx address, rdx access or limit, r8 the others, rsi slot, rbx, rdi, r9 scratch.
core::arch::global_asm!(
    r#"
.macro raddle_restore
 mov rcx, [rax + 0x50]
 mov rdx, [rax + 0x58]
 mov rbx, [rax + 0x60]
 mov rsi, [rax + 0x68]
 mov rdi, [rax + 0x70]
 mov r8, [rax + 0x78]
 mov r9, [rax + 0x80]
 mov rax, qword ptr gs:[0x5A5A0008]
.endm

# The cell at offset `at` of the plane `side` (0 writes, 8 reads) of slot rsi: ordered, or excluded?
.macro raddle_other side, at
 mov r9d, esi
 shl r9d, 4
 mov rbx, rcx
 xor rbx, [rax + r9 + 0x118 + \side]
 mov ebx, [rbx + \at]
 cmp ebx, edx
 jbe 5f
 shr ebx, 4
 mov r9, [rax + rsi * 8 + 0x518]
 mov ebx, [r9 + rbx * 4]
 mov r9, [rax + 0x40]
 mov ebx, [r9 + rbx * 4]
 cmp ebx, [rax + 0x48]
 jne 7f
5:
.endm

# Is what the own cell at offset `at` held stood for? All its bytes must be; and no lock is held now, or
# those held then were alike, or it is the own stack.
.macro raddle_own at
 mov esi, [rbx + \at]
 test esi, esi
 jz 5f
 mov r8d, esi
 not r8d
 test r8d, 0xf
 jnz 6f
 cmp dword ptr [rax + 0x4c], 0
 jne 5f
 shr esi, 4
 mov r9, [rax + 0x618]
 mov esi, [r9 + rsi * 4]
 mov r9, [rax + 0x40]
 mov esi, [r9 + rsi * 4]
 cmp esi, [rax + 0x48]
 je 5f
 cmp rcx, [rax + 0x620]
 jb 6f
 cmp rcx, [rax + 0x628]
 jae 6f
5:
.endm

.macro raddle_middle side, wide
 .p2align 6
 mov qword ptr gs:[0x5A5A0008], rax
 mov rax, qword ptr gs:[0x5A5A00A0]
 mov [rax + 0x50], rcx
 mov [rax + 0x58], rdx
 mov [rax + 0x60], rbx
 mov [rax + 0x68], rsi
 mov [rax + 0x70], rdi
 mov [rax + 0x78], r8
 mov [rax + 0x80], r9
 mov rcx, qword ptr gs:[0x5A5A0030]
 test cl, 3
 jnz 6f
 .if \wide
 mov edx, ecx
 and edx, 63
 cmp edx, 56
 ja 6f
 .endif
 # The description: one made before at this site, with this stack and these locks.
 mov rbx, qword ptr gs:[0x5A5A0038]
 lea rsi, [rsp + 136]
 imul edx, ebx, 0x9E3779B1
 mov edi, esi
 shr edi, 4
 xor edx, edi
 imul edx, edx, 0x85EBCA6B
 shr edx, 22
 shl edx, 9
 add rdx, [rax + 0x30]
 cmp [rdx + 8], ebx
 jne 6f
 cmp [rdx], rsi
 jne 6f
 mov edi, [rdx + 16]
 lea r8, [rdx + 32]
 test edi, edi
 jz 2f
1:
 mov rbx, [r8]
 mov rbx, [rbx]
 cmp rbx, [r8 + 8]
 jne 6f
 add r8, 16
 dec edi
 jnz 1b
2:
 mov edx, [rdx + 12]
 # The own cells.
 mov rbx, rcx
 xor rbx, [rax + 0x08 + \side]
 mov rdi, rcx
 xor rdi, [rax + 0x18 + \side]
 raddle_own 0
 .if \wide
 raddle_own 4
 .endif
 # Stamp: what first, then when; the exchange is the fence.
 mov dword ptr [rdi], edx
 .if \wide
 mov dword ptr [rdi + 4], edx
 .endif
 mov [rax + 0x88], rdx
 mov rsi, [rax]
 .if \wide
 xchg [rbx], rsi
 .else
 xchg dword ptr [rbx], esi
 .endif
 inc qword ptr [rax + 0x90]
 # Look: who shares the line?
 mov rdi, rcx
 shr rdi, 6
 shl rdi, 3
 add rdi, [rax + 0x28]
 mov esi, [rax + 0x38]
 .if \side
 test [rdi + 4], esi
 jnz 3f
 lock or [rdi + 4], esi
3:
 mov r8d, [rdi]
 .else
 test [rdi], esi
 jnz 3f
 lock or [rdi], esi
3:
 mov r8d, [rdi]
 or r8d, [rdi + 4]
 .endif
 not esi
 and r8d, esi
 jz 9f
 js 7f
4:
 bsf esi, r8d
 mov edx, [rax + rsi * 4 + 0x98]
 raddle_other 0, 0
 .if \wide
 raddle_other 0, 4
 .endif
 .if \side == 0
 raddle_other 8, 0
 .if \wide
 raddle_other 8, 4
 .endif
 .endif
 lea edi, [r8 - 1]
 and r8d, edi
 jnz 4b
9:
 raddle_restore
 ret
6:
 raddle_restore
 jmp qword ptr gs:[0x5A5A00A8]
7:
 mov dword ptr [rax + 0x8c], 1
 raddle_restore
 jmp qword ptr gs:[0x5A5A00A8]
.endm

 .p2align 6
.globl raddle_middle_begin
.hidden raddle_middle_begin
.globl raddle_middle_end
.hidden raddle_middle_end
.globl raddle_middle_write_8
.hidden raddle_middle_write_8
.globl raddle_middle_read_4
.hidden raddle_middle_read_4
.globl raddle_middle_read_8
.hidden raddle_middle_read_8
raddle_middle_begin:
 raddle_middle 0, 0
 .p2align 6
raddle_middle_write_8:
 raddle_middle 0, 1
 .p2align 6
raddle_middle_read_4:
 raddle_middle 8, 0
 .p2align 6
raddle_middle_read_8:
 raddle_middle 8, 1
raddle_middle_end:
"#
);

unsafe extern "C" {
    static raddle_middle_begin: u8;
    static raddle_middle_write_8: u8;
    static raddle_middle_read_4: u8;
    static raddle_middle_read_8: u8;
    static raddle_middle_end: u8;
}

/// The installed code.
#[derive(Debug, Clone, Copy)]
pub struct MiddlePath {
    code: CodeAddress,
}

impl MiddlePath {
    /// Makes it work for these slots and places it where the code cache can call it.
    pub fn install(slots: Slots) -> Result<MiddlePath, &'static str> {
        // SAFETY: both labels delimit one stretch of our own text.
        let template = unsafe {
            let begin = &raw const raddle_middle_begin;
            let end = &raw const raddle_middle_end;
            std::slice::from_raw_parts(begin, end.offset_from(begin) as usize)
        };
        // In each of the four: rax saved, restored three times, four slots read.
        const PATCHES: usize = 4 * 9;
        Ok(MiddlePath { code: trampoline::place(template, slots, PATCHES)? })
    }

    /// The entry for accesses of this side and size, if it serves them.
    pub fn entry(&self, side: Side, size: u32) -> Option<CodeAddress> {
        let label = match (side, size) {
            (Side::Write, 4) => &raw const raddle_middle_begin,
            (Side::Write, 8) => &raw const raddle_middle_write_8,
            (Side::Read, 4) => &raw const raddle_middle_read_4,
            (Side::Read, 8) => &raw const raddle_middle_read_8,
            _ => return None,
        };
        Some(self.code.offset(label as usize - &raw const raddle_middle_begin as usize))
    }
}
