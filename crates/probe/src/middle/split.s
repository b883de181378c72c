# Stamping a granule that is split, for the middle path: a part of its assembly, with its constants (`path.rs`).
#
# Each byte has a cell of its own, in the strip that the granule's cell names (`raddle_analyse::fast::strips`).

# rbx the place of the granule's cell, r8 the bytes, rcx an address in the line, edx the access. The bytes are stamped, and what the
# granule's cell said of an older tick is said by that of older ones. Back to where `Middle::back` says, with edi not zero if a byte's cell is
# not stood for: nothing is done then. Uses rsi.
.macro raddle_split side, noted
 .p2align 4
# The same for an access in one granule, which is noted then.
raddle_split_one_\side:
 lea rdi, [rip + .Lraddle_split\@]
 mov [rax + {back}], rdi
 jmp raddle_split_\side
.Lraddle_split\@:
 test edi, edi
 jz \noted
 mov dword ptr [rax + {look}], 0
 mov qword ptr [rax + {rest}], 0
 raddle_restore
 jmp qword ptr gs:[0x5A5A00A8]
 .p2align 6
raddle_split_\side:
 mov [rax + {looking}], r10
 mov [rax + {looking} + 8], r11
 mov [rax + {looking} + 16], r12
 mov [rax + {looking} + 24], r13
 mov r11, [rbx]
 shr r11, {access_at}
 sub r11, {first_strip}
 shl r11, {strip_bits}
 add r11, [rax + {strips}]
 cmp dword ptr [rax + {no_locks}], 0
 jne 2f
 mov r10d, r8d
1:
 bsf r12d, r10d
 mov rdi, [r11 + r12 * 8]
 test rdi, rdi
 jz 5f
 mov rsi, rdi
 shl rdi, {access_shift}
 cmp rdi, [rax + {settled}]
 jbe 5f
 xor rsi, [rax + {segment}]
 shl rsi, {access_shift}
 shr rsi, {tick_shift}
 jz 5f
 shr rdi, {tick_shift}
 raddle_alike "[rax + {own_locks}]", rdi, edi, rsi
 je 5f
 cmp rcx, [rax + {stack}]
 jb 6f
 cmp rcx, [rax + {stack} + 8]
 jae 6f
5:
 lea r13d, [r10 - 1]
 and r10d, r13d
 jnz 1b
2:
 mov rdi, rdx
 shl rdi, {access_at}
 mov rsi, [rax + {segment}]
 xor sil, sil
 or rdi, rsi
 mov r10d, r8d
1:
 bsf r12d, r10d
 mov rsi, rdi
 bts rsi, r12
 mov [r11 + r12 * 8], rsi
 lea r13d, [r10 - 1]
 and r10d, r13d
 jnz 1b
 # The granule's cell comes last.
 mov rsi, [rbx]
 mov rdi, rsi
 xor rdi, [rax + {segment}]
 shl rdi, {access_shift}
 shr rdi, {tick_shift}
 jnz 3f
 or rsi, r8
4:
 mov [rbx], rsi
 raddle_restore_looking
 xor edi, edi
 jmp [rax + {back}]
3:
 mov rdi, [rax + {older_cells} + \side]
 xor rdi, rbx
 mov r12, rsi
 or r12, 0xff
 mov [rdi], r12
 mov rdi, rcx
 shr rdi, 6
 shl rdi, 3
 add rdi, [rax + {sharers}]
 test dword ptr [rdi], {older_mark}
 jnz 3f
 lock or dword ptr [rdi], {older_mark}
3:
 shr rsi, {access_at}
 shl rsi, {access_at}
 mov rdi, [rax + {segment}]
 xor dil, dil
 or rsi, rdi
 or rsi, r8
 jmp 4b
6:
 raddle_restore_looking
 mov edi, 1
 jmp [rax + {back}]
.endm
