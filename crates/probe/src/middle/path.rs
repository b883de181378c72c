//! The assembly of the middle path.
//!
//! Two forms. Aligned accesses of four and eight bytes have one each, without a loop. All others go
//! through the general form, granule by granule: `r8` has a bit for each byte that is touched, from the
//! first byte of the first granule on, so that the next granule's bytes are its lowest four after a
//! shift.
//!
//! In both: `rax` is [`Middle`], `rdx` the access or another slot's limit, `rsi` that slot.

use super::{
    FOUND, MERGE_BITS, Middle, ROW_BITS, RULE_BITS, Row, RuleRow, SITE_BIT, SPREAD, SPREAD_SITE,
    STEP_BITS, Step,
};
use crate::frames;
use crate::trampoline;
use raddle_analyse::fast::protocol::{OLDER, SPECIAL};
use raddle_analyse::fast::{Side, journal};
use raddle_dynamorio::block::CodeAddress;
use raddle_dynamorio::slots::Slots;
use std::mem::offset_of;

core::arch::global_asm!(
    r#"
.macro raddle_enter
 mov qword ptr gs:[0x5A5A0008], rax
 mov rax, qword ptr gs:[0x5A5A00A0]
 mov [rax + {saved}], rcx
 mov [rax + {saved} + 8], rdx
 mov [rax + {saved} + 16], rbx
 mov [rax + {saved} + 24], rsi
 mov [rax + {saved} + 32], rdi
 mov [rax + {saved} + 40], r8
 mov [rax + {saved} + 48], r9
 mov rcx, qword ptr gs:[0x5A5A0030]
.endm

.macro raddle_restore
 mov rcx, [rax + {saved}]
 mov rdx, [rax + {saved} + 8]
 mov rbx, [rax + {saved} + 16]
 mov rsi, [rax + {saved} + 24]
 mov rdi, [rax + {saved} + 32]
 mov r8, [rax + {saved} + 40]
 mov r9, [rax + {saved} + 48]
 mov rax, qword ptr gs:[0x5A5A0008]
.endm

.macro raddle_restore_all
 mov r10, [rax + {saved} + 56]
 mov r11, [rax + {saved} + 64]
 raddle_restore
.endm

# How the path is left: done (9), to Rust before the stamp (6), to Rust to look again (7).
.macro raddle_exits restore
9:
 \restore
 ret
6:
 \restore
 jmp qword ptr gs:[0x5A5A00A8]
7:
 mov dword ptr [rax + {look}], 1
 \restore
 jmp qword ptr gs:[0x5A5A00A8]
.endm

# The description: one made before at this site, with this stack. Its number in edx, or on to Rust
# by label 6. The innermost known frame must be that of the function the site is in: its return address where
# the site's rule says, and unchanged. Uses rbx, rsi, rdi, \scratch.
.macro raddle_describe scratch
 mov rbx, qword ptr gs:[0x5A5A0038]
 mov rsi, qword ptr gs:[0x5A5A00F0]
 add rsi, qword ptr gs:[0x5A5A00F8]
 mov edi, [rsi + {frame_node}]
 imul edx, ebx, {spread_site}
 add edx, edi
 imul edx, edx, {spread}
 shr edx, {row_shift}
 shl edx, 4
 add rdx, [rax + {rows}]
 cmp [rdx + {row_site}], ebx
 jne .Lraddle_find\@
 cmp [rdx + {row_node}], edi
 jne .Lraddle_find\@
 movsxd \scratch, dword ptr [rdx + {row_at}]
 test \scratch, 1
 lea \scratch, [\scratch + rsp + 136]
 jnz .Lraddle_by_bp\@
.Lraddle_is_it\@:
 cmp \scratch, [rsi + {frame_at}]
 jne .Lraddle_find\@
 mov \scratch, [\scratch]
 cmp \scratch, [rsi + {frame_return}]
 jne .Lraddle_find\@
 mov edx, [rdx + {row_access}]
 jmp .Lraddle_described\@
.Lraddle_by_bp\@:
 sub \scratch, rsp
 lea \scratch, [\scratch + rbp - 137]
 jmp .Lraddle_is_it\@
.Lraddle_find\@:
 lea rdx, [rip + .Lraddle_found\@]
 mov [rax + {back}], rdx
 jmp raddle_find
.Lraddle_found\@:
 test edx, edx
 jz 6f
.Lraddle_described\@:
.endm

# Who shares the line of \address on the side that matters, without ourselves: in \others. On by label 9
# if nobody does, by 7 if there is more to be looked at. Who is alone has nothing older of others.
# Uses rdi, rsi.
.macro raddle_sharers side, address, others
 mov rdi, \address
 shr rdi, 6
 shl rdi, 3
 add rdi, [rax + {sharers}]
 mov esi, [rax + {own}]
 .if \side
 test [rdi + 4], esi
 jnz 3f
 lock or [rdi + 4], esi
3:
 mov \others, [rdi]
 .else
 test [rdi], esi
 jnz 3f
 lock or [rdi], esi
3:
 mov \others, [rdi]
 or \others, [rdi + 4]
 .endif
 not esi
 and \others, esi
 jz 9f
 js 7f
 btr \others, {older_bit}
 jnc 1f
 test \others, \others
 jnz 7f
 jmp 9f
1:
.endm

# After the cells were looked at: what lost its cell meanwhile was put elsewhere first, and the line marked.
# On by label 7 if it is. Uses rdi.
.macro raddle_look_again address
 mov rdi, \address
 shr rdi, 6
 shl rdi, 3
 add rdi, [rax + {sharers}]
 test dword ptr [rdi], {marks}
 jnz 7f
.endm

# An old cell of the own slot loses its place: what of it is not stood for, r10d, is put among the older ones,
# if it stands for what is there. Else on to Rust by label 6. rsi the cell's place, rdi the access's, r9
# an address in the line. Uses rbx, r11.
.macro raddle_set_aside side
 mov r11, [rax + {older_cells} + \side]
 test r11, r11
 jz 6f
 xor r11, rsi
 mov ebx, [r11]
 test ebx, ebx
 jz .Lraddle_set\@
 not r10d
 and ebx, r10d
 not r10d
 test ebx, 0xf
 jnz 6f
 # The locks held: none when the newer of the two was made, or the same.
 mov [rax + {saved} + 72], rdx
 mov [rax + {saved} + 80], rdi
 mov rdx, [rax + {own_locks}]
 mov ebx, r10d
 shr ebx, 4
 mov ebx, [rdx + rbx * 4]
 mov edi, [r11]
 shr edi, 4
 mov edi, [rdx + rdi * 4]
 mov rdx, [rax + {saved} + 72]
 cmp ebx, edi
 mov rdi, [rax + {saved} + 80]
 je .Lraddle_set\@
 test ebx, ebx
 jnz 6f
.Lraddle_set\@:
 # What first, then when, then the mark; the cell itself changes later.
 mov ebx, [rdi]
 xor rdi, [rax + {older_accesses} + \side]
 mov [rdi], ebx
 xor rdi, [rax + {older_accesses} + \side]
 mov [r11], r10d
 mov rbx, r9
 shr rbx, 6
 shl rbx, 3
 add rbx, [rax + {sharers}]
 test dword ptr [rbx], {older_mark}
 jnz .Lraddle_marked\@
 lock or dword ptr [rbx], {older_mark}
.Lraddle_marked\@:
.endm

# The access in edx to the bytes ecx, and what the own cell ebx has of others in the same segment by the
# access at rdi: in edx what stands for both, if that is known and it is one granule; else on to Rust by
# label 6. Uses rbx, r10, r11.
.macro raddle_merge
 test r8, -16
 jnz 6f
 mov r10d, ecx
 not r10d
 and r10d, ebx
 and r10d, 0xf
 shl r10d, 4
 or r10d, ecx
 mov r11d, [rdi]
 imul ebx, r11d, {spread}
 add ebx, edx
 imul ebx, ebx, {spread_site}
 add ebx, r10d
 imul ebx, ebx, {spread}
 shr ebx, {merge_shift}
 shl ebx, 4
 add rbx, [rax + {merges}]
 cmp [rbx], r11d
 jne 6f
 cmp [rbx + 4], edx
 jne 6f
 cmp [rbx + 8], r10d
 jne 6f
 mov edx, [rbx + 12]
.endm

# The cell at offset `at` of the plane `side` (0 writes, 8 reads) of slot rsi: ordered, or excluded?
.macro raddle_other side, at
 mov r9d, esi
 shl r9d, 4
 mov rbx, rcx
 xor rbx, [rax + r9 + {cell_keys} + \side]
 mov ebx, [rbx + \at]
 cmp ebx, edx
 jbe 5f
 shr ebx, 4
 mov r9, [rax + rsi * 8 + {lock_tables}]
 mov ebx, [r9 + rbx * 4]
 mov r9, [rax + {alike_table}]
 mov ebx, [r9 + rbx * 4]
 cmp ebx, [rax + {alike}]
 jne 7f
5:
.endm

# Is what the own cell at offset `at` held stood for? No lock is held now, or those held then were
# alike, or it is the own stack. If not: label 8.
.macro raddle_own at
 mov esi, [rbx + \at]
 test esi, esi
 jz 5f
 cmp dword ptr [rax + {no_locks}], 0
 jne 5f
 shr esi, 4
 mov r9, [rax + {own_locks}]
 mov esi, [r9 + rsi * 4]
 mov r9, [rax + {alike_table}]
 mov esi, [r9 + rsi * 4]
 cmp esi, [rax + {alike}]
 je 5f
 cmp rcx, [rax + {stack}]
 jb 8f
 cmp rcx, [rax + {stack} + 8]
 jae 8f
5:
.endm

# Into the journal: the first granule's address in \at, the bytes from there on. Uses rdi, rsi.
.macro raddle_note side, at, bytes
 mov edi, [rax + {count}]
 inc qword ptr [rax + {count}]
 and edi, {last}
 shl edi, 4
 .if \side
 lea rsi, [\at + 1]
 mov [rax + rdi + {ring}], rsi
 .else
 mov [rax + rdi + {ring}], \at
 .endif
 mov qword ptr [rax + rdi + {ring} + 8], \bytes
.endm

.macro raddle_aligned side, wide, general
 .p2align 6
 raddle_enter
 mov edx, 4 << \wide
 test cl, 3
 jnz \general
 .if \wide
 mov ebx, ecx
 and ebx, 63
 cmp ebx, 56
 ja 6f
 .endif
 raddle_describe r8
 # The own cells.
 mov rbx, rcx
 xor rbx, [rax + {cells} + \side]
 mov rdi, rcx
 xor rdi, [rax + {accesses} + \side]
 raddle_own 0
 .if \wide
 raddle_own 4
 .endif
 # Stamp: what first, then when; the exchange is the fence.
 mov dword ptr [rdi], edx
 .if \wide
 mov dword ptr [rdi + 4], edx
 .endif
 mov [rax + {stamped}], edx
 mov rsi, [rax + {segment}]
 .if \wide
 xchg [rbx], rsi
 .else
 xchg dword ptr [rbx], esi
 .endif
 .if \wide
 raddle_note \side, rcx, 0xff
 .else
 raddle_note \side, rcx, 0xf
 .endif
 # Look.
 raddle_sharers \side, rcx, r8d
4:
 bsf esi, r8d
 mov edx, [rax + rsi * 4 + {limits}]
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
 raddle_look_again rcx
 raddle_exits raddle_restore
8:
 mov edx, 4 << \wide
 jmp \general
.endm

# The cells of the plane `side` of slot rsi that have bytes in common with the access: ordered, or excluded?
# r8 the bytes, r9 the first granule, edx the limit. Uses rbx, rcx, rdi, r10.
.macro raddle_others side
 mov rcx, r8
 mov ebx, esi
 shl ebx, 4
 mov rbx, [rax + rbx + {cell_keys} + \side]
 xor rbx, r9
4:
 mov r10d, [rbx]
 cmp r10d, edx
 jbe 5f
 mov edi, r10d
 and edi, ecx
 and edi, 0xf
 jz 5f
 shr r10d, 4
 mov rdi, [rax + rsi * 8 + {lock_tables}]
 mov r10d, [rdi + r10 * 4]
 mov rdi, [rax + {alike_table}]
 mov edi, [rdi + r10 * 4]
 cmp edi, [rax + {alike}]
 jne 7f
5:
 add rbx, 4
 shr rcx, 4
 jnz 4b
.endm

# Any access that lies in one line: rcx the address, edx the size. After raddle_enter.
.macro raddle_general side
 .p2align 6
 mov [rax + {saved} + 56], r10
 mov [rax + {saved} + 64], r11
 mov esi, ecx
 and esi, 63
 add esi, edx
 cmp esi, 64
 ja 6f
 # The bytes, from the first of the first granule on.
 mov r9, rcx
 mov ecx, edx
 mov r8d, 1
 shl r8, cl
 dec r8
 mov ecx, r9d
 and ecx, 3
 shl r8, cl
 and r9, -4
 # Is there anything new in this segment?
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
 mov edx, [rax + {segment}]
1:
 mov ebx, [rsi]
 xor ebx, edx
 test ebx, -16
 jnz 2f
 and ebx, ecx
 jnz 2f
 add rsi, 4
 shr rcx, 4
 jnz 1b
 raddle_restore_all
 ret
2:
 raddle_describe rcx
 mov [rax + {stamped}], edx
 # The own cells. Those of this segment that touch other bytes are added to; of older segments, what is
 # not stood for is put aside, unless it is the own stack.
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
 mov rdi, r9
 xor rdi, [rax + {accesses} + \side]
1:
 mov ebx, [rsi]
 test ebx, ebx
 jz 5f
 mov r10d, ebx
 xor r10d, [rax + {segment}]
 test r10d, -16
 jnz 3f
 test r10d, ecx
 jz 5f
 cmp [rdi], edx
 je 5f
 mov r10d, ecx
 not r10d
 and r10d, ebx
 test r10d, 0xf
 jz 5f
 raddle_merge
 jmp 5f
3:
 cmp r9, [rax + {stack}]
 jb 4f
 cmp r9, [rax + {stack} + 8]
 jb 5f
4:
 # The bytes that are touched again are stood for if the locks are no more.
 mov r10d, ebx
 cmp dword ptr [rax + {no_locks}], 0
 jne 3f
 shr ebx, 4
 mov r11, [rax + {own_locks}]
 mov ebx, [r11 + rbx * 4]
 mov r11, [rax + {alike_table}]
 mov ebx, [r11 + rbx * 4]
 cmp ebx, [rax + {alike}]
 jne 4f
3:
 mov ebx, ecx
 and ebx, 0xf
 not ebx
 and r10d, ebx
 test r10d, 0xf
 jz 5f
4:
 raddle_set_aside \side
5:
 add rsi, 4
 add rdi, 4
 shr rcx, 4
 jnz 1b
 # Stamp: what first, then when; then the fence.
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
 mov rdi, r9
 xor rdi, [rax + {accesses} + \side]
 mov r11d, [rax + {segment}]
 and r11d, -16
1:
 mov ebx, [rsi]
 mov r10d, ebx
 xor r10d, r11d
 test r10d, -16
 jnz 3f
 mov r10d, ecx
 and r10d, 0xf
 or r10d, ebx
 cmp r10d, ebx
 je 5f
 jmp 4f
3:
 mov r10d, ecx
 and r10d, 0xf
 or r10d, r11d
4:
 mov [rdi], edx
 mov [rsi], r10d
5:
 add rsi, 4
 add rdi, 4
 shr rcx, 4
 jnz 1b
 raddle_note \side, r9, r8
 lock or dword ptr [rax + {stamped}], 0
 # Look.
 raddle_sharers \side, r9, r11d
8:
 bsf esi, r11d
 mov edx, [rax + rsi * 4 + {limits}]
 raddle_others 0
 .if \side == 0
 raddle_others 8
 .endif
 lea edi, [r11 - 1]
 and r11d, edi
 jnz 8b
 raddle_look_again r9
 raddle_exits raddle_restore_all
.endm

.macro raddle_sized size, general
 .p2align 4
 raddle_enter
 mov edx, \size
 jmp \general
.endm

 .p2align 6
.globl raddle_middle_begin
.hidden raddle_middle_begin
raddle_middle_begin:
 raddle_aligned 0, 0, raddle_general_write
.globl raddle_middle_write_8
.hidden raddle_middle_write_8
 .p2align 6
raddle_middle_write_8:
 raddle_aligned 0, 1, raddle_general_write
.globl raddle_middle_read_4
.hidden raddle_middle_read_4
 .p2align 6
raddle_middle_read_4:
 raddle_aligned 8, 0, raddle_general_read
.globl raddle_middle_read_8
.hidden raddle_middle_read_8
 .p2align 6
raddle_middle_read_8:
 raddle_aligned 8, 1, raddle_general_read
 .p2align 6
raddle_general_write:
 raddle_general 0
 .p2align 6
raddle_general_read:
 raddle_general 8
# By size: 1, 2, 16, 32, in steps of {sized} bytes.
.globl raddle_middle_write_sized
.hidden raddle_middle_write_sized
 .p2align 7
raddle_middle_write_sized:
 raddle_sized 1, raddle_general_write
 .p2align 7
 raddle_sized 2, raddle_general_write
 .p2align 7
 raddle_sized 16, raddle_general_write
 .p2align 7
 raddle_sized 32, raddle_general_write
.globl raddle_middle_read_sized
.hidden raddle_middle_read_sized
 .p2align 7
raddle_middle_read_sized:
 raddle_sized 1, raddle_general_read
 .p2align 7
 raddle_sized 2, raddle_general_read
 .p2align 7
 raddle_sized 16, raddle_general_read
 .p2align 7
 raddle_sized 32, raddle_general_read

# The frames that are not known yet, by the rules of the places they belong to, from the site ebx up to one
# that is known; they are known then. The access in edx, zero if anything is not sure. Uses rsi, rdi.
# rcx the stack pointer, r9 the frame pointer, r11 the place, r12 where the return address is, r13 that.
# Nothing is read that does not lie between the stack pointer and a frame that is known, and so on the stack.
 .p2align 6
raddle_find:
 mov [rax + {looking}], rcx
 mov [rax + {looking} + 8], r8
 mov [rax + {looking} + 16], r9
 mov [rax + {looking} + 24], r10
 mov [rax + {looking} + 32], r11
 mov [rax + {looking} + 40], r12
 mov [rax + {looking} + 48], r13
 mov rdx, [rax + {age_at}]
 mov edx, [rdx]
 cmp edx, [rax + {age}]
 jne 8f
 mov rsi, qword ptr gs:[0x5A5A00F0]
 mov rdi, qword ptr gs:[0x5A5A00F8]
 lea rcx, [rsp + 136]
 mov r9, rbp
 mov r11d, ebx
 bts r11, {site_bit}
 xor r10d, r10d
1:
 imul edx, r11d, {spread}
 shr edx, {rule_shift}
 shl edx, 4
 add rdx, [rax + {rules}]
 cmp [rdx], r11
 jne 8f
 movsxd r12, dword ptr [rdx + {rule_at}]
 test r12d, 1
 jnz 2f
 add r12, rcx
 jmp 3f
2:
 lea r12, [r12 + r9 - 1]
3:
 cmp r12, rcx
 jb 8f
 # Frames inside of this one have been left.
4:
 cmp [rsi + rdi + {frame_at}], r12
 jae 5f
 sub rdi, {frame_size}
 jmp 4b
5:
 cmp edi, {first}
 je 8f
 mov r13, [r12]
 cmp [rsi + rdi + {frame_at}], r12
 je 6f
 cmp r10d, {found_size}
 jae 8f
 mov [rax + r10 + {found}], r12
 mov [rax + r10 + {found} + 8], r13
 add r10d, 16
 movsxd rdx, dword ptr [rdx + {rule_bp}]
 test edx, edx
 jz 2f
 add rdx, r12
 cmp rdx, rcx
 jb 8f
 mov r9, [rdx]
2:
 lea rcx, [r12 + 8]
 mov r11, r13
 jmp 1b
6:
 # Met. Those in the way are no more; the new ones overwrite them.
 cmp [rsi + rdi + {frame_return}], r13
 jne 8f
 mov qword ptr gs:[0x5A5A00F8], rdi
 mov r9d, [rsi + rdi + {frame_node}]
1:
 test r10d, r10d
 jz 7f
 sub r10d, 16
 mov r13, [rax + r10 + {found} + 8]
 imul edx, r9d, {spread_site}
 add edx, r13d
 imul edx, edx, {spread}
 shr edx, {step_shift}
 shl edx, 4
 add rdx, [rax + {steps}]
 cmp [rdx + {step_return}], r13
 jne 8f
 cmp [rdx + {step_outer}], r9d
 jne 8f
 mov r9d, [rdx + {step_node}]
 cmp rdi, [rsi + {limit}]
 jae 8f
 add rdi, {frame_size}
 mov r12, [rax + r10 + {found}]
 mov [rsi + rdi + {frame_at}], r12
 mov [rsi + rdi + {frame_return}], r13
 mov [rsi + rdi + {frame_node}], r9d
 jmp 1b
7:
 mov qword ptr gs:[0x5A5A00F8], rdi
 mov r12, [rsi + rdi + {frame_at}]
 add r12, 8
 cmp r12, qword ptr gs:[0x5A5A0048]
 jae 2f
 mov qword ptr gs:[0x5A5A0048], r12
2:
 imul edx, ebx, {spread_site}
 add edx, r9d
 imul edx, edx, {spread}
 shr edx, {row_shift}
 shl edx, 4
 add rdx, [rax + {rows}]
 cmp [rdx + {row_site}], ebx
 jne 8f
 cmp [rdx + {row_node}], r9d
 jne 8f
 mov edx, [rdx + {row_access}]
 jmp 9f
8:
 xor edx, edx
9:
 mov rcx, [rax + {looking}]
 mov r8, [rax + {looking} + 8]
 mov r9, [rax + {looking} + 16]
 mov r10, [rax + {looking} + 24]
 mov r11, [rax + {looking} + 32]
 mov r12, [rax + {looking} + 40]
 mov r13, [rax + {looking} + 48]
 jmp [rax + {back}]
.globl raddle_middle_end
.hidden raddle_middle_end
raddle_middle_end:
"#,
    saved = const offset_of!(Middle, saved),
    older_cells = const offset_of!(Middle, older_cells),
    older_accesses = const offset_of!(Middle, older_accesses),
    older_bit = const OLDER.trailing_zeros(),
    older_mark = const OLDER,
    marks = const (OLDER | SPECIAL) as i32,
    merges = const offset_of!(Middle, merges),
    merge_shift = const u32::BITS - MERGE_BITS,
    segment = const offset_of!(Middle, segment),
    cells = const offset_of!(Middle, cells),
    accesses = const offset_of!(Middle, accesses),
    sharers = const offset_of!(Middle, sharers),
    rows = const offset_of!(Middle, rows),
    own = const offset_of!(Middle, own),
    alike_table = const offset_of!(Middle, alike_table),
    alike = const offset_of!(Middle, alike),
    no_locks = const offset_of!(Middle, no_locks),
    stamped = const offset_of!(Middle, stamped),
    look = const offset_of!(Middle, look),
    count = const offset_of!(Middle, journal.count),
    ring = const offset_of!(Middle, journal.ring),
    last = const journal::LENGTH - 1,
    limits = const offset_of!(Middle, limits),
    cell_keys = const offset_of!(Middle, cell_keys),
    lock_tables = const offset_of!(Middle, lock_tables),
    own_locks = const offset_of!(Middle, own_locks),
    stack = const offset_of!(Middle, journal.stack),
    row_site = const offset_of!(Row, site),
    row_node = const offset_of!(Row, node),
    row_access = const offset_of!(Row, access),
    row_at = const offset_of!(Row, at),
    row_shift = const u32::BITS - ROW_BITS,
    rules = const offset_of!(Middle, rules),
    rule_at = const offset_of!(RuleRow, rule.at),
    rule_bp = const offset_of!(RuleRow, rule.bp),
    rule_shift = const u32::BITS - RULE_BITS,
    site_bit = const SITE_BIT,
    steps = const offset_of!(Middle, steps),
    step_return = const offset_of!(Step, return_address),
    step_outer = const offset_of!(Step, outer),
    step_node = const offset_of!(Step, node),
    step_shift = const u32::BITS - STEP_BITS,
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
    sized = const SIZED,
);

/// Bytes from one entry of the general form to the next.
const SIZED: usize = 128;

unsafe extern "C" {
    static raddle_middle_begin: u8;
    static raddle_middle_write_8: u8;
    static raddle_middle_read_4: u8;
    static raddle_middle_read_8: u8;
    static raddle_middle_write_sized: u8;
    static raddle_middle_read_sized: u8;
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
        // Three in each entry, restored and left: eight in the aligned form, nine in the general one; and
        // six where frames are looked for.
        const PATCHES: usize = 4 * (3 + 8) + 2 * 9 + 8 * 3 + 6;
        Ok(MiddlePath { code: trampoline::place(template, slots, PATCHES)? })
    }

    /// The entry for accesses of this side and size, if it serves them.
    pub fn entry(&self, side: Side, size: u32) -> Option<CodeAddress> {
        let sized = |number: usize| {
            let first = match side {
                Side::Write => &raw const raddle_middle_write_sized,
                Side::Read => &raw const raddle_middle_read_sized,
            };
            first.wrapping_add(number * SIZED)
        };
        let label = match (side, size) {
            (Side::Write, 4) => &raw const raddle_middle_begin,
            (Side::Write, 8) => &raw const raddle_middle_write_8,
            (Side::Read, 4) => &raw const raddle_middle_read_4,
            (Side::Read, 8) => &raw const raddle_middle_read_8,
            (_, 1) => sized(0),
            (_, 2) => sized(1),
            (_, 16) => sized(2),
            (_, 32) => sized(3),
            _ => return None,
        };
        Some(self.code.offset(label as usize - &raw const raddle_middle_begin as usize))
    }
}
