# Noting what was stamped, and looking at the others, for the middle path: a part of its assembly, with its registers
# and its constants (`path.rs`).
#
# The fence between stamping and looking waits for all that the thread has written, so many stamps share one. A note is
# a line and which of its bytes were touched; accesses to a line that has a note are added to it. When there
# are enough notes, or Rust needs to know, the others are looked at for all of them.

# What was stamped is noted: rcx the first granule, r8 the bytes from there on, all in one line. We are among
# those who share the line from now on, and say under what locks, block by block. What the line's last note has not been looked at for is added to it;
# when there are enough notes, the others are looked at.
.macro raddle_noted side
 .p2align 6
 shl r8, cl
 mov rsi, rcx
 shr rsi, 6
 mov r9, [rax + {sharers}]
 lea r9, [r9 + rsi * 8]
 mov edx, [rax + {own}]
 .if \side
 test [r9 + 4], edx
 .else
 test [r9], edx
 .endif
 jz 3f
1:
 test dword ptr [r9 + 4], {mixed_locks}
 jz 8f
9:
 mov ebx, esi
 and ebx, {open_last}
 shl rsi, 6
 .if \side
 or rsi, 1
 .endif
 mov rdi, [rax + rbx * 8 + {open} + \side * {open_half}]
 cmp rdi, [rax + {looked}]
 jb 2f
 and edi, {last}
 shl edi, 4
 cmp [rax + rdi + {ring}], rsi
 jne 2f
 test dword ptr [r9], {synchronises}
 jnz 2f
 or [rax + rdi + {ring} + 8], r8
 inc qword ptr [rax + {joined}]
 raddle_leave
2:
 # A note of its own.
 mov rdi, [rax + {count}]
 mov [rax + rbx * 8 + {open} + \side * {open_half}], rdi
 mov ebx, edi
 and ebx, {last}
 shl ebx, 4
 mov [rax + rbx + {ring}], rsi
 mov [rax + rbx + {ring} + 8], r8
 inc rdi
 mov [rax + {count}], rdi
 # Who goes through memory comes to the next line soon, and where many are gone through by turns the processor does not see it.
 lea rbx, [rcx + 64]
 xor rbx, [rax + {cells} + \side]
 prefetchw [rbx]
 # What will be looked at of another who shares the line is far away, as a rule: it is asked for now.
 mov edx, [r9]
 and edx, [rax + {others}]
 jnz 4f
 .if \side == 0
6:
 mov edx, [r9 + 4]
 and edx, [rax + {others}]
 jnz 5f
 .endif
2:
 sub rdi, [rax + {looked}]
 cmp rdi, [rax + {most}]
 jae raddle_look
 # Where an access may order threads, Rust looks at once.
 test dword ptr [r9], {synchronises}
 jnz raddle_look
 raddle_leave
4:
 bsf edx, edx
 shl edx, 4
 mov rbx, [rax + rdx + {cell_keys}]
 xor rbx, rcx
 prefetcht0 [rbx]
 .if \side
 jmp 2b
 .else
 jmp 6b
5:
 bsf edx, edx
 shl edx, 4
 mov rbx, [rax + rdx + {cell_keys} + 8]
 xor rbx, rcx
 prefetcht0 [rbx]
 jmp 2b
 .endif
3:
 mov rdx, [rax + {joins} + \side]
 lock or [r9], rdx
 mov edx, [rax + {own}]
 # Which of the chunk's pages has been here, of those it is remembered for?
 mov rdi, rcx
 shr rdi, {chunk_bits}
 # For who clears it: the chunk has been touched by us.
 mov rbx, [rax + {touched}]
 test [rbx + rdi * 4], edx
 jnz 7f
 lock or [rbx + rdi * 4], edx
7:
 mov ebx, edi
 and ebx, {chunks_last}
 shl ebx, 3
 add rbx, [rax + {chunks} + \side]
 shl rdi, 5
 or rdi, [rax + {chunks_age}]
 mov edx, ecx
 shr edx, 12
 and edx, 15
 or rdi, rdx
 mov rdx, [rbx]
 xor rdx, rdi
 jz 1b
 cmp rdx, 31
 ja 5f
 test byte ptr [rbx], 16
 jz raddle_populate_\side
 jmp 1b
5:
 mov [rbx], rdi
 jmp 1b
# Was all that was done before to each of the blocks done under locks like the own; or nothing?
8:
 cmp dword ptr [rax + {alike}], {unlike}
 je .Lraddle_mixed\@
 mov rdx, rsi
 shl rdx, 6 - {block_bits} + 2
 add rdx, [rax + {blocks_alike}]
 mov rdi, r8
.Lraddle_block\@:
 test di, di
 jz .Lraddle_next\@
 mov ebx, [rdx]
 cmp ebx, [rax + {alike}]
 je .Lraddle_next\@
 test ebx, ebx
 jnz .Lraddle_mixed\@
 mov [rax + {looking}], rdi
 mov ebx, [rax + {alike}]
 mov rdi, rax
 xor eax, eax
 lock cmpxchg [rdx], ebx
 xchg rax, rdi
 jz .Lraddle_claimed\@
 cmp edi, [rax + {alike}]
 jne .Lraddle_mixed\@
.Lraddle_claimed\@:
 mov rdi, [rax + {looking}]
.Lraddle_next\@:
 add rdx, 4
 shr rdi, {block_bytes}
 jnz .Lraddle_block\@
 jmp 9b
.Lraddle_mixed\@:
 lock or dword ptr [r9 + 4], {mixed_locks}
 jmp 9b
# A second page of a chunk of 64 KiB: the kernel gives all of its cells at once. It would give each page twice, first to be
# read, and when it is written, after telling all processors. Not of stacks, of which little is used, nor for the crowd.
 .p2align 4
raddle_populate_\side:
 or byte ptr [rbx], 16
 cmp dword ptr [rax + {member}], 0
 jne 1b
 cmp rcx, [rax + {stack}]
 jb 6f
 cmp rcx, [rax + {stack} + 8]
 jb 1b
6:
 mov [rax + {looking}], rcx
 mov [rax + {looking} + 8], r11
 mov [rax + {looking} + 16], rsi
 mov rbx, rax
 mov rdi, rcx
 xor rdi, [rax + {cells} + \side]
 and rdi, -(1 << {chunk_bits})
 mov esi, 1 << {chunk_bits}
 mov edx, {populate_write}
 mov eax, {madvise}
 syscall
 mov rdi, r9
 and rdi, -(1 << ({chunk_bits} - 3))
 mov esi, 1 << ({chunk_bits} - 3)
 mov eax, {madvise}
 syscall
 mov rax, rbx
 mov rcx, [rax + {looking}]
 mov r11, [rax + {looking} + 8]
 mov rsi, [rax + {looking} + 16]
 jmp 1b
.endm

# Where the cells of slot rsi in the plane `side` (0 writes, 8 reads) are for a note, rbx, and its bytes from there on, rdi: r13 the
# note's line, r8 its bytes, ecx how many bits of them are zero, a multiple of 8. `older`: those of older accesses instead. Uses r9.
.macro raddle_cells side, older
 mov ebx, esi
 shl ebx, 4
 .if \older
 mov r9, [rax + rbx + {older_keys} + \side]
 xor r9, [rax + rbx + {cell_keys} + \side]
 mov rbx, r9
 .else
 mov rbx, [rax + rbx + {cell_keys} + \side]
 .endif
 mov r9, r13
 and r9, -64
 xor rbx, r9
 add rbx, rcx
 mov rdi, r8
 shr rdi, cl
.endm

# The read whose note has the number r10 met a write. Uses r12.
.macro raddle_meet
 inc qword ptr [rax + {handed}]
 mov r12d, r10d
 and r12d, {last}
 shl r12d, 4
 or byte ptr [rax + r12 + {ring}], {met}
.endm

# The cells of slot rsi in the plane `side` that have bytes in common with a note: ordered,
# or excluded? Registers as above; rdx the limit. A reader that is excluded from a write counts it. On by label 7 if neither. Uses
# rbx, rdi, r9, r12.
.macro raddle_others side, older
 raddle_cells \side, \older
4:
 test [rbx], dil
 jz 5f
 mov r9, [rbx]
 shl r9, {access_shift}
 cmp r9, rdx
 jbe 5f
 .if \older
 # What is older in a strip has other ticks, too.
 raddle_if_split rbx, 7f
 .endif
 raddle_member r9, r12, r12d
 shr r9, {tick_shift}
 raddle_alike "[rax + rsi * 8 + {lock_tables}]", r9, r9d, r12
 jne 7f
 .if \side == 0
 test r13b, 1
 jz 5f
 raddle_meet
 .endif
5:
 add rbx, 8
 shr rdi, 8
 jnz 4b
.endm

# The same for the rooms of the crowd, slot rsi: is there none, or was all in it done under locks like the own?
.macro raddle_rooms side
 raddle_cells \side, 1
4:
 test dil, dil
 jz 5f
 mov r9, [rbx]
 test r9, r9
 jz 5f
 shr r9, 32
 cmp r9d, [rax + {alike}]
 jne 7f
 .if \side == 0
 test r13b, 1
 jz 5f
 raddle_meet
 .endif
5:
 add rbx, 8
 shr rdi, 8
 jnz 4b
.endm

# Where it stands who shares the line of the note r13. Uses \other.
.macro raddle_line at, other
 mov \at, r13
 shr \at, 6
 mov \other, [rax + {sharers}]
 lea \at, [\other + \at * 8]
.endm

# Those who share the line of the note r13, with its writers if it was read and with all if it was written: r11d the
# slots, and marks above them, rdi where that stands. Uses rsi.
.macro raddle_sharers
 raddle_line rdi, rsi
 mov r11d, [rdi]
 test r13b, 1
 jnz .Lraddle_writers\@
 or r11d, [rdi + 4]
.Lraddle_writers\@:
.endm

# On by \yes if all that was ever done to the blocks of a note was done under locks like the own: r13 the note's line, r8 its bytes, rdi
# where it stands who shares the line. Uses rbx, rsi, r9.
.macro raddle_agreed_note yes
 test dword ptr [rdi + 4], {mixed_locks}
 jnz .Lraddle_not_agreed\@
 mov rsi, r13
 shr rsi, 6
 shl rsi, 6 - {block_bits} + 2
 add rsi, [rax + {blocks_alike}]
 mov r9d, [rax + {alike}]
 mov rbx, r8
.Lraddle_block\@:
 test bx, bx
 jz .Lraddle_next\@
 cmp [rsi], r9d
 jne .Lraddle_not_agreed\@
.Lraddle_next\@:
 add rsi, 4
 shr rbx, {block_bytes}
 jnz .Lraddle_block\@
 jmp \yes
.Lraddle_not_agreed\@:
.endm

# What the slots have done to a note that share its line on `side` (0 its writers, 8 its readers), as rdi says, and are among \whom:
# \looks at one of them. Only there it has anything: to look for it elsewhere would touch memory that is nobody's. Uses r11.
.macro raddle_of side, looks, whom="[rax + {others}]"
 mov r11d, [rdi + \side / 2]
 and r11d, \whom
 jz .Lraddle_none\@
.Lraddle_next\@:
 bsf esi, r11d
 mov rdx, [rax + rsi * 8 + {limits}]
 \looks \side
 lea r9d, [r11 - 1]
 and r11d, r9d
 jnz .Lraddle_next\@
.Lraddle_none\@:
.endm

.macro raddle_look_newest side
 raddle_others \side, 0
.endm

.macro raddle_look_older side
 cmp esi, [rax + {crowd_slot}]
 je .Lraddle_crowd\@
 raddle_others \side, 1
 jmp .Lraddle_seen\@
.Lraddle_crowd\@:
 raddle_rooms \side
.Lraddle_seen\@:
.endm

 .p2align 6
raddle_noted_write:
 raddle_noted 0
 .p2align 6
raddle_noted_read:
 raddle_noted 8

# What was noted and not looked at yet: all of it is visible to all, and then the others who share each line
# are looked at. Those that are not sure, and all behind them, are left to Rust.
# r10 the number of the note, r11 the others, r13 the line and, in its lowest bit, that it was read.
 .p2align 6
raddle_look:
 mov [rax + {looking}], r10
 mov [rax + {looking} + 8], r11
 mov [rax + {looking} + 16], r12
 mov [rax + {looking} + 24], r13
 mov r10, [rax + {looked}]
 # Now and then to Rust, where it is seen that signals come.
 dec dword ptr [rax + {looks}]
 jz 7f
 mov rdi, [rax + {count}]
 cmp rdi, [rax + {ask_at}]
 jae 7f
 lock or dword ptr [rax + {look}], 0
1:
 mov edi, r10d
 and edi, {last}
 shl edi, 4
 mov r13, [rax + rdi + {ring}]
 mov r8, [rax + rdi + {ring} + 8]
 raddle_sharers
 # Who is alone finds nothing of others, in whatever place.
 and r11d, [rax + {others}]
 jz 9f
 cmp dword ptr [rdi], 0
 js 7f
 bsf rcx, r8
 and ecx, 56
 cmp dword ptr [rax + {no_locks}], 0
 jne raddle_look_cells
 raddle_agreed_note raddle_look_agreed
raddle_look_cells:
 raddle_of 0, raddle_look_newest
 test r13b, 1
 jnz 6f
 raddle_line rdi, rsi
 raddle_of 8, raddle_look_newest
6:
 # What lost its cell meanwhile was put elsewhere first, and the line marked: the cells have been read, now the marks, and
 # then what is older: edx whose, all slots' or the crowd's or both. Rooms are marked among the readers.
 raddle_line rdi, rsi
 cmp dword ptr [rdi], 0
 js 7f
 bt dword ptr [rdi], {older_bit}
 sbb edx, edx
 and edx, [rax + {older_of}]
 mov r9d, {write_room}
 test r13b, 1
 jnz 2f
 mov r9d, {any_room}
2:
 test [rdi + 4], r9d
 jz 2f
 or edx, [rax + {rooms_of}]
2:
 and edx, [rax + {others}]
 jz 8f
 mov [rax + {looking} + 32], edx
 raddle_of 0, raddle_look_older, "[rax + {looking} + 32]"
 test r13b, 1
 jnz 6f
 raddle_line rdi, rsi
 raddle_of 8, raddle_look_older, "[rax + {looking} + 32]"
6:
 # An older access, too, may have had to make room.
 raddle_line rdi, rsi
 cmp dword ptr [rdi], 0
 js 7f
8:
 inc r10
 cmp r10, [rax + {count}]
 jb 1b
 mov [rax + {looked}], r10
 raddle_restore_looking
 raddle_leave
raddle_rest:
 jmp [rax + {rest_to}]
raddle_look_agreed:
 # Nothing of the others is in the way. But a reader counts what they wrote that it does not know. Where there is more than their
 # cells it is looked at as usual.
 test r13b, 1
 jz 8b
 bt dword ptr [rdi], {older_bit}
 jc raddle_look_cells
 test r11d, [rax + {rooms_of}]
 jnz raddle_look_cells
4:
 bsf esi, r11d
 mov rdx, [rax + rsi * 8 + {limits}]
 raddle_cells 0, 0
5:
 test [rbx], dil
 jz 6f
 mov r9, [rbx]
 shl r9, {access_shift}
 cmp r9, rdx
 ja 2f
6:
 add rbx, 8
 shr rdi, 8
 jnz 5b
 lea r9d, [r11 - 1]
 and r11d, r9d
 jnz 4b
 jmp 8b
2:
 raddle_meet
 jmp 8b
9:
 # Unless every access to this memory may order threads.
 test dword ptr [rdi], {synchronises}
 jz 8b
7:
 # Rust is to look, or, if a part of the access is not stamped yet, to do all of it.
 mov [rax + {looked}], r10
 xor edi, edi
 cmp [rax + {rest}], rdi
 mov [rax + {rest}], rdi
 sete dil
 mov [rax + {look}], edi
 raddle_restore_looking
 raddle_restore
 jmp qword ptr gs:[0x5A5A00A8]
