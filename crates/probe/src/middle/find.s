# Finding frames, for the middle path: a part of its assembly, with its registers and its constants (`path.rs`).
#
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
 shr edx, {hash_shift}
 and edx, [rax + {rule_mask}]
 add rdx, [rax + {rules}]
 cmp [rdx], r11
 je 2f
 xor rdx, {row_size}
 cmp [rdx], r11
 jne 8f
2:
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
 shr edx, {hash_shift}
 and edx, [rax + {step_mask}]
 add rdx, [rax + {steps}]
 cmp [rdx + {step_return}], r13
 jne 2f
 cmp [rdx + {step_outer}], r9d
 je 3f
2:
 # Or in the place beside it, here and below.
 xor rdx, {row_size}
 cmp [rdx + {step_return}], r13
 jne 8f
 cmp [rdx + {step_outer}], r9d
 jne 8f
3:
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
 shr edx, {hash_shift}
 and edx, [rax + {row_mask}]
 add rdx, [rax + {rows}]
 cmp [rdx + {row_site}], ebx
 jne 4f
 cmp [rdx + {row_node}], r9d
 je 5f
4:
 xor rdx, {row_size}
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
