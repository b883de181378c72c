//! The assembly of the middle path.
//!
//! Two forms. Accesses of one, two, four and eight bytes that lie in one granule have one each, without a
//! loop. All others go through the general form, granule by granule: `r8` has a bit for each byte that is
//! touched, from the first byte of the first granule on, so that the next granule's bytes are its lowest
//! eight after a shift.
//!
//! In both: `rax` is [`Middle`], `rdx` the access or another slot's limit, `rsi` that slot. A cell shifted
//! to the left by `ACCESS_SHIFT` has lost its access and can be compared with a limit; shifted back by
//! `TICK_SHIFT` it is its tick.

use super::{
    ACCESS_SHIFT, FOUND, MERGE_BITS, Middle, ROW_BITS, RULE_BITS, Row, RuleRow, SITE_BIT, SPREAD,
    SPREAD_SITE, STEP_BITS, Step, TICK_SHIFT,
};
use crate::frames;
use crate::trampoline;
use raddle_analyse::fast::cell::ACCESS_AT;
use raddle_analyse::fast::crowd::{MIXED, RUN_BITS};
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
 and \others, [rax + {others}]
 jz 9f
 js 7f
 btr \others, {older_bit}
 jnc 1f
 test \others, \others
 jnz 7f
 jmp 9f
1:
.endm

# Of an access that lies in two lines, the one at r9 + \by: is nobody else there? On by label 7 if somebody is.
# Uses rdi, rsi, rbx.
.macro raddle_alone side, by
 lea rdi, [r9 + \by]
 shr rdi, 6
 shl rdi, 3
 add rdi, [rax + {sharers}]
 mov esi, [rax + {own}]
 .if \side
 test [rdi + 4], esi
 jnz 3f
 lock or [rdi + 4], esi
3:
 mov ebx, [rdi]
 .else
 test [rdi], esi
 jnz 3f
 lock or [rdi], esi
3:
 mov ebx, [rdi]
 or ebx, [rdi + 4]
 .endif
 not esi
 and ebx, esi
 btr ebx, {older_bit}
 test ebx, ebx
 jnz 7f
.endm

# After the cells were looked at: what lost its cell meanwhile was put elsewhere first, and the line marked.
# On by label 7 if it is. Reads of the crowd are marked among the readers. Uses rdi.
.macro raddle_look_again side, address
 mov rdi, \address
 shr rdi, 6
 shl rdi, 3
 add rdi, [rax + {sharers}]
 test dword ptr [rdi], {marks}
 jnz 7f
 .if \side == 0
 test dword ptr [rdi + 4], {older_mark}
 jnz 7f
 .endif
.endm

# An old cell of the own slot loses its place: what of it is not stood for, r10, is put among the older ones,
# if it stands for what is there. Else on to Rust by label 6. rsi the cell's place, r9 an address in the
# line. Uses rbx, rdi, r11.
.macro raddle_set_aside side
 mov r11, [rax + {older_cells} + \side]
 xor r11, rsi
 mov rbx, [r11]
 test rbx, rbx
 jz .Lraddle_set\@
 mov rdi, r10
 not rdi
 and rdi, rbx
 test dil, dil
 jnz 6f
 # The locks held: none when the newer of the two was made, or the same.
 mov [rax + {saved} + 72], rdx
 mov rdi, [rax + {own_locks}]
 shl rbx, {access_shift}
 shr rbx, {tick_shift}
 mov ebx, [rdi + rbx * 4]
 mov rdx, r10
 shl rdx, {access_shift}
 shr rdx, {tick_shift}
 mov edi, [rdi + rdx * 4]
 mov rdx, [rax + {saved} + 72]
 cmp ebx, edi
 je .Lraddle_set\@
 test edi, edi
 jnz 6f
.Lraddle_set\@:
 # The older place first, then the mark; the cell itself changes later.
 mov [r11], r10
 mov rbx, r9
 shr rbx, 6
 shl rbx, 3
 add rbx, [rax + {sharers}]
 test dword ptr [rbx], {older_mark}
 jnz .Lraddle_marked\@
 lock or dword ptr [rbx], {older_mark}
.Lraddle_marked\@:
.endm

# The access in edx to the bytes cl, and r10d, the bytes that the own cell has by the access r11d of the same
# segment: in edx what stands for both, if that is known and it is one granule; else on to Rust by
# label 6. Uses rbx, r10.
.macro raddle_merge
 test r8, -256
 jnz 6f
 shl r10d, 8
 movzx ebx, cl
 or r10d, ebx
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

# Are the locks that \table has for \tick, whose lower half is \half, like the own? The flags say so. Uses
# \other.
.macro raddle_alike table, tick, half, other
 mov \other, \table
 mov \half, [\other + \tick * 4]
 mov \other, [rax + {alike_table}]
 mov \half, [\other + \tick * 4]
 cmp \half, [rax + {alike}]
.endm

# \cell, as it is compared, is not known by the limit of its slot, esi: on by label 5 if the slot is the crowd's and it is
# known of its member. Uses \other, whose lower half is \half.
.macro raddle_member cell, other, half
 cmp esi, [rax + {crowd_slot}]
 jne .Lraddle_no_member\@
 mov \other, \cell
 shr \other, {run_shift}
 shl \other, 2
 add \other, [rax + {owners}]
 mov \half, [\other]
 shl \other, 3
 add \other, [rax + {member_limits}]
 cmp \cell, [\other]
 jbe 5f
.Lraddle_no_member\@:
.endm

# Where the own cell is whose place in the own plane is rbx: there, but for a member of the crowd perhaps in the granule's
# room. Uses rsi, rdi.
.macro raddle_place side
 cmp dword ptr [rax + {member}], 0
 je .Lraddle_placed\@
 lea rsi, [rip + .Lraddle_placed\@]
 jmp raddle_place_\side
.Lraddle_placed\@:
.endm

# The same for a member, and back to rsi. Left if the room says that this segment has touched the bytes r8; to
# Rust if there is nobody in the cell, or no room.
.macro raddle_find_place side
 mov [rax + {back}], rsi
 mov rdi, [rbx]
 shl rdi, {access_shift}
 shr rdi, {run_shift}
 shl rdi, 2
 add rdi, [rax + {owners}]
 mov edi, [rdi]
 cmp edi, [rax + {member}]
 je 8f
 test edi, edi
 jz 6f
 mov rdi, [rax + {older_cells} + \side]
 xor rdi, rbx
 mov rbx, [rdi]
 test rbx, rbx
 jz 6f
 # Rust notes where locks are not like those of others.
 mov rdi, [rax + {rooms}]
 mov edi, [rdi + rbx]
 cmp edi, {mixed}
 je 7f
 cmp edi, [rax + {alike}]
 jne 6f
7:
 add rbx, [rax + {entries}]
 mov rsi, [rbx]
 xor rsi, [rax + {segment}]
 mov rdi, rsi
 shl rdi, {access_shift}
 shr rdi, {tick_shift}
 jnz 8f
 test sil, r8b
 jz 9f
8:
 jmp [rax + {back}]
9:
 raddle_restore
 ret
6:
 raddle_restore
 jmp qword ptr gs:[0x5A5A00A8]
.endm

# The cell of granule rcx in the plane `side` (0 writes, 8 reads) of slot rsi, if it has one of the bytes
# r8: ordered, or excluded? A \reader that is excluded from a write counts it. Uses rbx, r9.
.macro raddle_other side, reader
 mov r9d, esi
 shl r9d, 4
 mov rbx, rcx
 xor rbx, [rax + r9 + {cell_keys} + \side]
 mov r9, [rbx]
 test r9b, r8b
 jz 5f
 shl r9, {access_shift}
 cmp r9, rdx
 jbe 5f
 raddle_member r9, rbx, ebx
 shr r9, {tick_shift}
 raddle_alike "[rax + rsi * 8 + {lock_tables}]", r9, r9d, rbx
 jne 7f
 .if \reader
 inc qword ptr [rax + {handed}]
 .endif
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

# An access of \size bytes, aligned so that it lies in one granule.
.macro raddle_one side, size, general
 .p2align 6
 raddle_enter
 mov edx, \size
 .if \size > 1
 test cl, \size - 1
 jnz \general
 .endif
 .if \size < 8
 mov r9, rcx
 and ecx, 7
 mov r8d, (1 << \size) - 1
 shl r8d, cl
 mov rcx, r9
 and rcx, -8
 # Has this segment touched these bytes, if not all?
 mov rbx, rcx
 xor rbx, [rax + {cells} + \side]
 mov rsi, [rbx]
 xor rsi, [rax + {segment}]
 mov rdi, rsi
 shl rdi, {access_shift}
 shr rdi, {tick_shift}
 jnz 2f
 test sil, r8b
 jz 9f
2:
 .else
 mov r8d, 0xff
 .endif
 raddle_describe r9
 mov rbx, rcx
 xor rbx, [rax + {cells} + \side]
 raddle_place \side
 mov rdi, [rax + {segment}]
 mov rsi, [rbx]
 .if \size < 8
 # Only these bytes are stamped, beside others of this segment.
 xor dil, dil
 or rdi, r8
 .endif
 test rsi, rsi
 jz 5f
 .if \size < 8
 mov r9, rsi
 xor r9, [rax + {segment}]
 shl r9, {access_shift}
 shr r9, {tick_shift}
 jnz 3f
 # Others by another access are for the general form.
 mov r9, rsi
 shr r9, {access_at}
 cmp r9d, edx
 jne 8f
 movzx esi, sil
 or rdi, rsi
 jmp 5f
3:
 .endif
 # Is what the own cell held stood for? It is if it is settled; if no lock is held now, or those held then
 # were alike, and all its bytes are touched again; or it is the own stack.
 mov r9, rsi
 shl r9, {access_shift}
 cmp r9, [rax + {settled}]
 jbe 5f
 .if \size < 8
 mov r9d, r8d
 not r9d
 test sil, r9b
 jnz 4f
 .endif
 cmp dword ptr [rax + {no_locks}], 0
 jne 5f
 shl rsi, {access_shift}
 shr rsi, {tick_shift}
 raddle_alike "[rax + {own_locks}]", rsi, esi, r9
 je 5f
4:
 cmp rcx, [rax + {stack}]
 jb 8f
 cmp rcx, [rax + {stack} + 8]
 jae 8f
5:
 # Stamp; the exchange is the fence.
 mov [rax + {stamped}], edx
 shl rdx, {access_at}
 or rdi, rdx
 xchg [rbx], rdi
 raddle_note \side, rcx, r8
 # Look.
 raddle_sharers \side, rcx, r9d
 mov edi, r9d
4:
 bsf esi, edi
 mov rdx, [rax + rsi * 8 + {limits}]
 raddle_other 0, \side
 .if \side == 0
 raddle_other 8, 0
 .endif
 lea r9d, [rdi - 1]
 and edi, r9d
 jnz 4b
 raddle_look_again \side, rcx
 raddle_exits raddle_restore
8:
 mov rcx, qword ptr gs:[0x5A5A0030]
 mov edx, \size
 jmp \general
.endm

# The cells of the plane `side` of slot rsi that have bytes in common with the access: ordered, or excluded?
# r8 the bytes, r9 the first granule, rdx the limit; \reader as above. Uses rbx, rcx, rdi, r10.
.macro raddle_others side, reader
 mov rcx, r8
 mov ebx, esi
 shl ebx, 4
 mov rbx, [rax + rbx + {cell_keys} + \side]
 xor rbx, r9
4:
 mov r10, [rbx]
 test r10b, cl
 jz 5f
 shl r10, {access_shift}
 cmp r10, rdx
 jbe 5f
 raddle_member r10, rdi, edi
 shr r10, {tick_shift}
 raddle_alike "[rax + rsi * 8 + {lock_tables}]", r10, r10d, rdi
 jne 7f
 .if \reader
 inc qword ptr [rax + {handed}]
 .endif
5:
 add rbx, 8
 shr rcx, 8
 jnz 4b
.endm

# Any access that lies in one line, or in two that nobody else has touched: rcx the address, edx the size. After raddle_enter.
.macro raddle_general side
 .p2align 6
 mov [rax + {saved} + 56], r10
 mov [rax + {saved} + 64], r11
 # What the crowd does is here only if it is as simple as can be.
 cmp dword ptr [rax + {member}], 0
 jne 6f
 mov esi, ecx
 and esi, 63
 add esi, edx
 mov dword ptr [rax + {crosses}], 0
 cmp esi, 64
 jbe 1f
 mov dword ptr [rax + {crosses}], 1
1:
 # The bytes, from the first of the first granule on.
 mov r9, rcx
 mov ecx, edx
 mov r8d, 1
 shl r8, cl
 dec r8
 mov ecx, r9d
 and ecx, 7
 shl r8, cl
 and r9, -8
 # Is there anything new in this segment?
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
 mov rdx, [rax + {segment}]
1:
 mov rbx, [rsi]
 xor rbx, rdx
 mov rdi, rbx
 shl rdi, {access_shift}
 shr rdi, {tick_shift}
 jnz 2f
 test bl, cl
 jnz 2f
 add rsi, 8
 shr rcx, 8
 jnz 1b
 raddle_restore_all
 ret
2:
 raddle_describe rcx
 mov [rax + {stamped}], edx
 # The own cells. Those of this segment that touch other bytes are added to; of older segments, what is
 # neither settled nor stood for is put aside, unless it is the own stack.
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
1:
 mov rbx, [rsi]
 test rbx, rbx
 jz 5f
 mov r10, rbx
 xor r10, [rax + {segment}]
 mov r11, r10
 shl r11, {access_shift}
 shr r11, {tick_shift}
 jnz 3f
 test r10b, cl
 jz 5f
 mov r11, rbx
 shr r11, {access_at}
 cmp r11d, edx
 je 5f
 mov r10d, ecx
 not r10d
 and r10d, ebx
 and r10d, 0xff
 jz 5f
 raddle_merge
 jmp 5f
3:
 mov r10, rbx
 shl r10, {access_shift}
 cmp r10, [rax + {settled}]
 jbe 5f
 cmp r9, [rax + {stack}]
 jb 4f
 cmp r9, [rax + {stack} + 8]
 jb 5f
4:
 # The bytes that are touched again are stood for if the locks are no more.
 mov r10, rbx
 cmp dword ptr [rax + {no_locks}], 0
 jne 3f
 shl rbx, {access_shift}
 shr rbx, {tick_shift}
 raddle_alike "[rax + {own_locks}]", rbx, ebx, r11
 jne 4f
3:
 movzx ebx, cl
 not rbx
 and r10, rbx
 test r10b, r10b
 jz 5f
4:
 cmp dword ptr [rax + {crosses}], 0
 jne 6f
 raddle_set_aside \side
5:
 add rsi, 8
 shr rcx, 8
 jnz 1b
 # Stamp; then the fence.
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
 mov rdi, rdx
 shl rdi, {access_at}
 mov r11, [rax + {segment}]
 xor r11b, r11b
1:
 mov rbx, [rsi]
 movzx r10d, cl
 mov rdx, rbx
 xor rdx, r11
 shl rdx, {access_shift}
 shr rdx, {tick_shift}
 jnz 4f
 or r10b, bl
 cmp r10b, bl
 je 5f
4:
 or r10, r11
 or r10, rdi
 mov [rsi], r10
5:
 add rsi, 8
 shr rcx, 8
 jnz 1b
 raddle_note \side, r9, r8
 lock or dword ptr [rax + {stamped}], 0
 # Look.
 cmp dword ptr [rax + {crosses}], 0
 je 2f
 raddle_alone \side, 0
 raddle_alone \side, 64
 jmp 9f
2:
 raddle_sharers \side, r9, r11d
8:
 bsf esi, r11d
 mov rdx, [rax + rsi * 8 + {limits}]
 raddle_others 0, \side
 .if \side == 0
 raddle_others 8, 0
 .endif
 lea edi, [r11 - 1]
 and r11d, edi
 jnz 8b
 raddle_look_again \side, r9
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
# Writes of 1, 2, 4 and 8 bytes, then reads, in steps of {one} bytes.
raddle_middle_begin:
 raddle_one 0, 1, raddle_general_write
 .org raddle_middle_begin + 1 * {one}
 raddle_one 0, 2, raddle_general_write
 .org raddle_middle_begin + 2 * {one}
 raddle_one 0, 4, raddle_general_write
 .org raddle_middle_begin + 3 * {one}
 raddle_one 0, 8, raddle_general_write
 .org raddle_middle_begin + 4 * {one}
 raddle_one 8, 1, raddle_general_read
 .org raddle_middle_begin + 5 * {one}
 raddle_one 8, 2, raddle_general_read
 .org raddle_middle_begin + 6 * {one}
 raddle_one 8, 4, raddle_general_read
 .org raddle_middle_begin + 7 * {one}
 raddle_one 8, 8, raddle_general_read
 .org raddle_middle_begin + 8 * {one}
raddle_place_0:
 raddle_find_place 0
raddle_place_8:
 raddle_find_place 8
 .p2align 6
raddle_general_write:
 raddle_general 0
 .p2align 6
raddle_general_read:
 raddle_general 8
# Of 16 and 32 bytes, writes and reads, in steps of {sized} bytes.
.globl raddle_middle_sized
.hidden raddle_middle_sized
 .p2align 7
raddle_middle_sized:
 raddle_sized 16, raddle_general_write
 .p2align 7
 raddle_sized 32, raddle_general_write
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
 jne 4f
 cmp [rdx + {row_node}], r9d
 je 5f
4:
 # Or in the place beside it.
 xor rdx, 16
 cmp [rdx + {row_site}], ebx
 jne 8f
 cmp [rdx + {row_node}], r9d
 jne 8f
5:
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
    older_bit = const OLDER.trailing_zeros(),
    older_mark = const OLDER,
    marks = const (OLDER | SPECIAL) as i32,
    merges = const offset_of!(Middle, merges),
    merge_shift = const u32::BITS - MERGE_BITS,
    segment = const offset_of!(Middle, segment),
    cells = const offset_of!(Middle, cells),
    settled = const offset_of!(Middle, settled),
    sharers = const offset_of!(Middle, sharers),
    rows = const offset_of!(Middle, rows),
    own = const offset_of!(Middle, own),
    others = const offset_of!(Middle, others),
    member = const offset_of!(Middle, member),
    crowd_slot = const offset_of!(Middle, crowd_slot),
    owners = const offset_of!(Middle, owners),
    member_limits = const offset_of!(Middle, member_limits),
    entries = const offset_of!(Middle, entries),
    rooms = const offset_of!(Middle, rooms),
    mixed = const MIXED as i32,
    run_shift = const TICK_SHIFT + RUN_BITS,
    alike_table = const offset_of!(Middle, alike_table),
    alike = const offset_of!(Middle, alike),
    no_locks = const offset_of!(Middle, no_locks),
    stamped = const offset_of!(Middle, stamped),
    look = const offset_of!(Middle, look),
    crosses = const offset_of!(Middle, crosses),
    count = const offset_of!(Middle, journal.count),
    handed = const offset_of!(Middle, journal.handed),
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
        // Three in each entry, restored and left: nine in either form; and six where frames are looked for.
        // And three where a member of the crowd finds its place.
        const PATCHES: usize = 8 * (3 + 9) + 2 * 9 + 4 * 3 + 6 + 2 * 3;
        Ok(MiddlePath { code: trampoline::place(template, slots, PATCHES)? })
    }

    /// The entry for accesses of this side and size, if it serves them.
    pub fn entry(&self, side: Side, size: u32) -> Option<CodeAddress> {
        let side = side as usize;
        let sized =
            &raw const raddle_middle_sized as usize - &raw const raddle_middle_begin as usize;
        let offset = match size {
            1 | 2 | 4 | 8 => (side * 4 + size.trailing_zeros() as usize) * ONE,
            16 => sized + side * 2 * SIZED,
            32 => sized + (side * 2 + 1) * SIZED,
            _ => return None,
        };
        Some(self.code.offset(offset))
    }
}
