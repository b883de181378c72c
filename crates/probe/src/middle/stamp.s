# Entering, describing and stamping, for the middle path: a part of its assembly, with its constants (`path.rs`).
#
# Two forms. Accesses of one, two, four and eight bytes that lie in one granule have one each, without a loop. All others go through the
# general form, granule by granule: `r8` has a bit for each byte that is touched, from the first byte of the first granule on, so that the
# next granule's bytes are its lowest eight after a shift. Both end where what was stamped is noted (`look.s`). Of an access that lies in two
# lines, the part in the second one comes when that in the first has been noted.

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

.macro raddle_restore_looking
 mov r10, [rax + {looking}]
 mov r11, [rax + {looking} + 8]
 mov r12, [rax + {looking} + 16]
 mov r13, [rax + {looking} + 24]
.endm

.macro raddle_restore_all
 mov r10, [rax + {saved} + 56]
 mov r11, [rax + {saved} + 64]
 raddle_restore
.endm

# How the path is left behind the stamp, unless a part of the access is in the next line.
.macro raddle_leave
 cmp qword ptr [rax + {rest}], 0
 jne raddle_rest
 raddle_restore
 ret
.endm

# How the path is left before the stamp: nothing new (9), to Rust (6), which does all of it.
.macro raddle_exits restore
9:
 \restore
 ret
6:
 mov dword ptr [rax + {look}], 0
 mov qword ptr [rax + {rest}], 0
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
 shr edx, {hash_shift}
 and edx, [rax + {row_mask}]
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

# An old cell of the own slot loses its place: what of it is not stood for, r10, is put among the older ones,
# if that is settled, or it stands for what is there, which is not said of strips. Else on to Rust by label 6. rsi the cell's place, r9 an address in the
# line. Uses rbx, rdi, r11.
.macro raddle_set_aside side
 mov r11, [rax + {older_cells} + \side]
 xor r11, rsi
 mov rbx, [r11]
 test rbx, rbx
 jz .Lraddle_set\@
 mov rdi, rbx
 shl rdi, {access_shift}
 cmp rdi, [rax + {settled}]
 jbe .Lraddle_set\@
 raddle_if_split r11, 6f
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

# The access in edx, and \old of the same segment: in edx what stands for both, if that is known; else on to
# Rust by label 6. \bytes: those that are left of the old one, above those of the new one. Uses \half, the
# lower half of \whole.
.macro raddle_merge old, bytes, half, whole
 imul \half, \old, {spread}
 add \half, edx
 imul \half, \half, {spread_site}
 add \half, \bytes
 imul \half, \half, {spread}
 shr \half, {hash_shift}
 and \half, [rax + {merge_mask}]
 add \whole, [rax + {merges}]
 cmp [\whole], \old
 jne .Lraddle_beside\@
 cmp [\whole + 4], edx
 jne .Lraddle_beside\@
 cmp [\whole + 8], \bytes
 je .Lraddle_merged\@
.Lraddle_beside\@:
 xor \whole, {row_size}
 cmp [\whole], \old
 jne 6f
 cmp [\whole + 4], edx
 jne 6f
 cmp [\whole + 8], \bytes
 jne 6f
.Lraddle_merged\@:
 mov edx, [\whole + 12]
.endm

# On by \split if the cell at \place names a strip.
.macro raddle_if_split place, split
 cmp byte ptr [\place + 7], {strip_digit}
 jae \split
.endm

# All bytes are touched of a granule that is split, whose cell is at \place: it is so no more. What is in the strip is stood for, as no
# locks are held; else on by \other. Uses \scratch.
.macro raddle_unsplit side, place, scratch, other
 cmp dword ptr [rax + {no_locks}], 0
 je \other
 mov \scratch, [rax + {older_cells} + \side]
 xor \scratch, \place
 mov qword ptr [\scratch], 0
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

# On by \yes if all that was ever done to the block of the address \at was done under locks like the own. Uses \other, whose lower
# half is \half.
.macro raddle_agreed at, other, half, yes
 mov \other, \at
 shr \other, 6
 shl \other, 3
 add \other, [rax + {sharers}]
 test dword ptr [\other + 4], {mixed_locks}
 jnz .Lraddle_not_agreed\@
 mov \other, \at
 shr \other, {block_bits}
 shl \other, 2
 add \other, [rax + {blocks_alike}]
 mov \half, [\other]
 cmp \half, [rax + {alike}]
 je \yes
.Lraddle_not_agreed\@:
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
# Rust if it says that it has touched others, if there is nobody in the cell, or no room.
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
 mov rdi, rbx
 shr rdi, 32
 cmp edi, {mixed}
 je 7f
 cmp edi, [rax + {alike}]
 jne 6f
7:
 mov ebx, ebx
 xor rbx, [rax + {entries}]
 mov rsi, [rbx]
 xor rsi, [rax + {segment}]
 mov rdi, rsi
 shl rdi, {access_shift}
 shr rdi, {tick_shift}
 jnz 8f
 test sil, r8b
 jz 9f
 jmp 6f
8:
 jmp [rax + {back}]
9:
 raddle_restore
 ret
6:
 mov dword ptr [rax + {look}], 0
 raddle_restore
 jmp qword ptr gs:[0x5A5A00A8]
.endm

# An access of \size bytes, aligned so that it lies in one granule.
.macro raddle_one side, size, general, noted
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
 # Has this segment touched these bytes, or others of the granule?
 mov rbx, rcx
 xor rbx, [rax + {cells} + \side]
 mov rsi, [rbx]
 xor rsi, [rax + {segment}]
 mov rdi, rsi
 shl rdi, {access_shift}
 shr rdi, {tick_shift}
 jz 2f
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
 xor dil, dil
 or rdi, r8
 .endif
 test rsi, rsi
 jz 5f
 # Is what the own cell held stood for? It is if it is settled; if no lock is held now, or those held then
 # were alike, and all its bytes are touched again; or it is the own stack.
 mov r9, rsi
 shl r9, {access_shift}
 cmp r9, [rax + {settled}]
 jbe 5f
 .if \size < 8
 raddle_if_split rbx, raddle_split_one_\side
 .else
 raddle_if_split rbx, 1f
2:
 .endif
 .if \size < 8
 mov r9d, r8d
 not r9d
 test sil, r9b
 jnz 4f
 .endif
 cmp dword ptr [rax + {no_locks}], 0
 jne 5f
 raddle_agreed rcx, r9, r9d, 5f
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
 # Stamp. Whoever else touched the line is looked at later.
 shl rdx, {access_at}
 or rdi, rdx
 mov [rbx], rdi
 jmp \noted
 .if \size == 8
1:
 raddle_unsplit \side, rbx, r9, 6f
 jmp 2b
 .endif
 .if \size < 8
2:
 test sil, r8b
 jz 9f
 # Others, and not these: they are stamped beside them.
 raddle_describe r9
 mov rbx, rcx
 xor rbx, [rax + {cells} + \side]
 raddle_if_split rbx, raddle_split_one_\side
 mov rsi, [rbx]
 mov r9, rsi
 shr r9, {access_at}
 cmp r9d, edx
 je 3f
 movzx esi, sil
 mov edi, r8d
 not edi
 and edi, esi
 jz 3f
 shl edi, 8
 or edi, r8d
 raddle_merge r9d, edi, esi, rsi
3:
 movzx esi, byte ptr [rbx]
 or esi, r8d
 mov rdi, [rax + {segment}]
 xor dil, dil
 or rdi, rsi
 jmp 5b
 .endif
 raddle_exits raddle_restore
8:
 mov rcx, qword ptr gs:[0x5A5A0030]
 mov edx, \size
 jmp \general
.endm

# Any access: rcx the address, edx the size, up to 32. After raddle_enter. And, at raddle_line, one of 64 bytes: what there is of it in its
# first line, then what there is in its second.
.macro raddle_general side, noted
 .p2align 6
 mov [rax + {saved} + 56], r10
 mov [rax + {saved} + 64], r11
 # What the crowd does is here only if it is as simple as can be.
 cmp dword ptr [rax + {member}], 0
 jne 6f
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
 # Does the last byte lie in the first one's line?
 bsr rcx, r8
 mov esi, r9d
 and esi, 63
 add ecx, esi
 cmp ecx, 64
 jb raddle_part_\side
 mov ecx, 64
 sub ecx, esi
 mov rbx, r8
 shr rbx, cl
 mov [rax + {rest}], rbx
 lea rbx, [r9 + rcx]
 mov [rax + {rest_at}], rbx
 lea rbx, [rip + raddle_rest_\side]
 mov [rax + {rest_to}], rbx
 mov ebx, 1
 shl rbx, cl
 dec rbx
 and r8, rbx
raddle_part_\side:
 raddle_describe rcx
 # The own cells. Those of this segment that touch other bytes are added to; of older segments, what is
 # neither settled nor stood for is put aside, unless it is the own stack.
 mov rcx, r8
 mov rsi, r9
 xor rsi, [rax + {cells} + \side]
1:
 mov rbx, [rsi]
 test rbx, rbx
 jz 5f
 raddle_if_split rsi, 7f
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
 shl r10d, 8
 movzx ebx, cl
 or r10d, ebx
 mov [rax + {saved} + 80], rdx
 raddle_merge r11d, r10d, ebx, rbx
 # It is stamped at once: what stands for both is of this granule alone.
 mov rbx, [rsi]
 movzx r10d, cl
 or r10b, bl
 mov rbx, [rax + {segment}]
 xor bl, bl
 shl rdx, {access_at}
 or rbx, rdx
 or rbx, r10
 mov [rsi], rbx
 mov rdx, [rax + {saved} + 80]
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
 mov rdi, rsi
 xor rdi, [rax + {cells} + \side]
 raddle_agreed rdi, r11, r11d, 3f
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
 raddle_set_aside \side
5:
raddle_next_cell_\side:
 add rsi, 8
 shr rcx, 8
 jnz 1b
 # Stamp. Whoever else touched the line is looked at later.
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
 mov rcx, r9
 mov r10, [rax + {saved} + 56]
 mov r11, [rax + {saved} + 64]
 jmp \noted
7:
 cmp cl, 0xff
 jne 8f
 raddle_unsplit \side, rsi, r10, 8f
 jmp raddle_next_cell_\side
8:
 mov [rax + {saved} + 72], rsi
 mov [rax + {looking} + 40], rcx
 mov [rax + {looking} + 48], r8
 mov rbx, rsi
 movzx r8d, cl
 mov rcx, r9
 lea rdi, [rip + .Lraddle_split\@]
 mov [rax + {back}], rdi
 jmp raddle_split_\side
.Lraddle_split\@:
 mov rsi, [rax + {saved} + 72]
 mov rcx, [rax + {looking} + 40]
 mov r8, [rax + {looking} + 48]
 test edi, edi
 jz raddle_next_cell_\side
 jmp 6f
 .p2align 4
raddle_line_\side:
 mov [rax + {saved} + 56], r10
 mov [rax + {saved} + 64], r11
 cmp dword ptr [rax + {member}], 0
 jne 6f
 mov r9, rcx
 and r9, -8
 mov esi, ecx
 and esi, 63
 mov r8, -1
 and ecx, 7
 shl r8, cl
 test esi, esi
 jz raddle_part_\side
 mov ecx, esi
 mov ebx, 1
 shl rbx, cl
 dec rbx
 mov [rax + {rest}], rbx
 mov rbx, r9
 or rbx, 63
 inc rbx
 mov [rax + {rest_at}], rbx
 lea rbx, [rip + raddle_rest_\side]
 mov [rax + {rest_to}], rbx
 # Of the bits of 64 bytes from the first granule on, those beyond the line are the second's.
 and ecx, 56
 jz raddle_part_\side
 neg ecx
 add ecx, 64
 mov ebx, 1
 shl rbx, cl
 dec rbx
 and r8, rbx
 jmp raddle_part_\side
 # The part in the second line.
raddle_rest_\side:
 mov r8, [rax + {rest}]
 mov r9, [rax + {rest_at}]
 mov qword ptr [rax + {rest}], 0
 jmp raddle_part_\side
 raddle_exits raddle_restore_all
.endm
