//! The assembly of the middle path.
//!
//! `stamp.s` describes an access and stamps it, byte by byte where a granule is split (`split.s`); what was stamped is noted, and now and then looked at (`look.s`); `find.s` finds
//! frames. Here they are put together, with what they know of the layout of [`Middle`].
//!
//! In all: `rax` is [`Middle`], `rdx` the access or another slot's limit, `rsi` that slot. A cell shifted
//! to the left by `ACCESS_SHIFT` has lost its access and can be compared with a limit; shifted back by
//! `TICK_SHIFT` it is its tick.

use super::{
    ACCESS_SHIFT, CHUNKS, FOUND, HASH_SHIFT, Middle, OPEN, ROW_SIZE, Row, RuleRow, SITE_BIT,
    SPREAD, SPREAD_SITE, Step, TICK_SHIFT,
};
use crate::frames;
use crate::memory::shadow::CHUNK;
use crate::memory::strips::STRIP_BITS;
use crate::trampoline;
use raddle_analyse::fast::access::{STRIP_DIGIT, UNLIKE};
use raddle_analyse::fast::cell::{ACCESS_AT, BLOCK};
use raddle_analyse::fast::crowd::{MIXED, RUN_BITS};
use raddle_analyse::fast::protocol::{MIXED_LOCKS, OLDER, READ_ROOM, SYNCHRONISES, WRITE_ROOM};
use raddle_analyse::fast::{Side, journal};
use raddle_dynamorio::block::CodeAddress;
use raddle_dynamorio::slots::Slots;
use std::mem::offset_of;

core::arch::global_asm!(
    include_str!("stamp.s"),
    include_str!("split.s"),
    r#"
.macro raddle_sized size, general
 .p2align 4
 raddle_enter
 mov edx, \size
 jmp \general
.endm

 .p2align 6
.globl raddle_middle_begin
.hidden raddle_middle_begin
# Writes of 1, 2, 4 and 8 bytes, then reads, in steps of {one} bytes.
raddle_middle_begin:
 raddle_one 0, 1, raddle_general_write, raddle_noted_write
 .org raddle_middle_begin + 1 * {one}
 raddle_one 0, 2, raddle_general_write, raddle_noted_write
 .org raddle_middle_begin + 2 * {one}
 raddle_one 0, 4, raddle_general_write, raddle_noted_write
 .org raddle_middle_begin + 3 * {one}
 raddle_one 0, 8, raddle_general_write, raddle_noted_write
 .org raddle_middle_begin + 4 * {one}
 raddle_one 8, 1, raddle_general_read, raddle_noted_read
 .org raddle_middle_begin + 5 * {one}
 raddle_one 8, 2, raddle_general_read, raddle_noted_read
 .org raddle_middle_begin + 6 * {one}
 raddle_one 8, 4, raddle_general_read, raddle_noted_read
 .org raddle_middle_begin + 7 * {one}
 raddle_one 8, 8, raddle_general_read, raddle_noted_read
 .org raddle_middle_begin + 8 * {one}
raddle_place_0:
 raddle_find_place 0
raddle_place_8:
 raddle_find_place 8
 raddle_split 0, raddle_noted_write
 raddle_split 8, raddle_noted_read
 .p2align 6
raddle_general_write:
 raddle_general 0, raddle_noted_write
 .p2align 6
raddle_general_read:
 raddle_general 8, raddle_noted_read
"#,
    include_str!("look.s"),
    r#"
# Of 16, 32 and 64 bytes, writes and reads, in steps of {sized} bytes.
.globl raddle_middle_sized
.hidden raddle_middle_sized
 .p2align 7
raddle_middle_sized:
 raddle_sized 16, raddle_general_write
 .p2align 7
 raddle_sized 32, raddle_general_write
 .p2align 7
 raddle_sized 64, raddle_line_0
 .p2align 7
 raddle_sized 16, raddle_general_read
 .p2align 7
 raddle_sized 32, raddle_general_read
 .p2align 7
 raddle_sized 64, raddle_line_8

"#,
    include_str!("find.s"),
    r#"
.globl raddle_middle_end
.hidden raddle_middle_end
raddle_middle_end:
"#,
    saved = const offset_of!(Middle, saved),
    rest = const offset_of!(Middle, rest),
    rest_at = const offset_of!(Middle, rest_at),
    rest_to = const offset_of!(Middle, rest_to),
    older_cells = const offset_of!(Middle, older_cells),
    older_bit = const OLDER.trailing_zeros(),
    older_mark = const OLDER,
    older_of = const offset_of!(Middle, older_of),
    rooms_of = const offset_of!(Middle, rooms_of),
    write_room = const WRITE_ROOM,
    any_room = const WRITE_ROOM | READ_ROOM,
    merges = const offset_of!(Middle, merges.start),
    merge_mask = const offset_of!(Middle, merges.mask),
    hash_shift = const HASH_SHIFT,
    segment = const offset_of!(Middle, segment),
    cells = const offset_of!(Middle, cells),
    settled = const offset_of!(Middle, settled),
    sharers = const offset_of!(Middle, sharers),
    blocks_alike = const offset_of!(Middle, blocks_alike),
    block_bits = const BLOCK.trailing_zeros(),
    // A note has a bit for each byte of its line.
    block_bytes = const BLOCK,
    mixed_locks = const MIXED_LOCKS,
    unlike = const UNLIKE as i32,
    joins = const offset_of!(Middle, joins),
    touched = const offset_of!(Middle, touched),
    rows = const offset_of!(Middle, rows.start),
    row_mask = const offset_of!(Middle, rows.mask),
    own = const offset_of!(Middle, own),
    others = const offset_of!(Middle, others),
    synchronises = const SYNCHRONISES,
    chunks = const offset_of!(Middle, chunks),
    chunks_age = const offset_of!(Middle, chunks_age),
    chunks_last = const CHUNKS - 1,
    chunk_bits = const CHUNK.trailing_zeros(),
    madvise = const libc::SYS_madvise,
    populate_write = const libc::MADV_POPULATE_WRITE,
    member = const offset_of!(Middle, member),
    crowd_slot = const offset_of!(Middle, crowd_slot),
    owners = const offset_of!(Middle, owners),
    member_limits = const offset_of!(Middle, member_limits),
    entries = const offset_of!(Middle, entries),
    strips = const offset_of!(Middle, strips),
    first_strip = const STRIP_DIGIT << 20,
    strip_digit = const STRIP_DIGIT,
    strip_bits = const STRIP_BITS,
    mixed = const MIXED as i32,
    run_shift = const TICK_SHIFT + RUN_BITS,
    alike_table = const offset_of!(Middle, alike_table),
    alike = const offset_of!(Middle, alike),
    no_locks = const offset_of!(Middle, no_locks),
    looked = const offset_of!(Middle, looked),
    most = const offset_of!(Middle, most),
    joined = const offset_of!(Middle, joined),
    open = const offset_of!(Middle, open),
    open_last = const OPEN - 1,
    // From the notes of writes to those of reads, for a side of 8.
    open_half = const OPEN,
    look = const offset_of!(Middle, look),
    looks = const offset_of!(Middle, looks),
    ask_at = const offset_of!(Middle, ask_at),
    count = const offset_of!(Middle, journal.count),
    handed = const offset_of!(Middle, journal.handed),
    ring = const offset_of!(Middle, journal.ring),
    last = const journal::LENGTH - 1,
    met = const journal::MET,
    limits = const offset_of!(Middle, limits),
    cell_keys = const offset_of!(Middle, cell_keys),
    older_keys = const offset_of!(Middle, older_keys),
    lock_tables = const offset_of!(Middle, lock_tables),
    own_locks = const offset_of!(Middle, own_locks),
    stack = const offset_of!(Middle, journal.stack),
    row_size = const ROW_SIZE,
    row_site = const offset_of!(Row, site),
    row_node = const offset_of!(Row, node),
    row_access = const offset_of!(Row, access),
    row_at = const offset_of!(Row, at),
    rules = const offset_of!(Middle, rules.start),
    rule_mask = const offset_of!(Middle, rules.mask),
    rule_at = const offset_of!(RuleRow, rule.at),
    rule_bp = const offset_of!(RuleRow, rule.bp),
    site_bit = const SITE_BIT,
    steps = const offset_of!(Middle, steps.start),
    step_mask = const offset_of!(Middle, steps.mask),
    step_return = const offset_of!(Step, return_address),
    step_outer = const offset_of!(Step, outer),
    step_node = const offset_of!(Step, node),
    looking = const offset_of!(Middle, looking),
    back = const offset_of!(Middle, back),
    found = const offset_of!(Middle, found),
    found_size = const FOUND * 16,
    age_at = const offset_of!(Middle, age_at),
    age = const offset_of!(Middle, age),
    limit = const offset_of!(frames::Header, limit),
    first = const frames::FIRST,
    frame_at = const offset_of!(frames::Frame, at),
    frame_return = const offset_of!(frames::Frame, return_address),
    frame_node = const offset_of!(frames::Frame, node),
    frame_size = const size_of::<frames::Frame>(),
    spread_site = const SPREAD_SITE as i32,
    spread = const SPREAD as i32,
    access_at = const ACCESS_AT,
    access_shift = const ACCESS_SHIFT,
    tick_shift = const TICK_SHIFT,
    one = const ONE,
    sized = const SIZED,
);

/// Bytes from one form for accesses in one granule to the next; the assembler complains if that is too
/// little.
const ONE: usize = 1280;
/// Bytes from one entry of the general form to the next.
const SIZED: usize = 128;

unsafe extern "C" {
    static raddle_middle_begin: u8;
    static raddle_middle_sized: u8;
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
        // Three in each entry; seven in either form where it describes, restores and leaves, and three more where
        // parts of granules are described; two in either where it notes, three where it looks; and six where
        // frames are looked for. And three where a member of the crowd finds its place, two where a split granule is left to Rust.
        const PATCHES: usize = 8 * (3 + 7) + 6 * 3 + 2 * 7 + 6 * 3 + 2 * 2 + 3 + 6 + 2 * 3 + 2 * 2;
        Ok(MiddlePath { code: trampoline::place(template, slots, PATCHES)? })
    }

    /// The entry for accesses of this side and size, if it serves them.
    pub fn entry(&self, side: Side, size: u32) -> Option<CodeAddress> {
        let side = side as usize;
        let sized =
            &raw const raddle_middle_sized as usize - &raw const raddle_middle_begin as usize;
        let offset = match size {
            1 | 2 | 4 | 8 => (side * 4 + size.trailing_zeros() as usize) * ONE,
            16 | 32 | 64 => {
                let number = size.trailing_zeros() as usize - 4;
                sized + (side * 3 + number) * SIZED
            }
            _ => return None,
        };
        Some(self.code.offset(offset))
    }
}
