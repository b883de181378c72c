// Instructions that touch memory more than once, atomic and not (thesis 4.2.4), and conditional
// ones (4.2.5). A read-modify-write is one event if nothing can come between, else two.
//
// watch: memory
// options: --place probe*
// build: gcc -g -no-pie

#include "asm.h"

        .data
        .balign 64
        variable byte 1
        variable half 2
        .balign 16
        variable word 4
        variable other 4
        variable quad 8
        variable pair 16
        variable bits 32
        variable target 8

        .text
        function main
        push %rbx
        lea leaf(%rip), %rax
        mov %rax, target(%rip)
        call probe_locked
        call probe_unlocked
        call probe_conditional
        call probe_operands
        call probe_nothing
        cmpl $41, word(%rip)
        setne %al
        movzbl %al, %eax
        pop %rbx
        ret
        end main

        function probe_locked
        mov $5, %eax
        lock xaddl %eax, word(%rip)             // expect: atomic-update 4 word
        lock xaddq %rcx, quad(%rip)             // expect: atomic-update 8 quad
        mov $7, %eax
        xchg %eax, word(%rip)                   // expect: atomic-update 4 word
        xchg %al, byte(%rip)                    // expect: atomic-update 1 byte
        lock xchg %cx, half(%rip)               // expect: atomic-update 2 half
        lea quad(%rip), %rdi
        xchg %rdx, (%rdi)                       // expect: atomic-update 8 quad
        mov %edx, %edx
        mov $7, %eax
        movl $7, other(%rip)                    // expect: write 4 other
        mov $9, %ecx
        lock cmpxchgl %ecx, other(%rip)         // expect: atomic-update 4 other
        jne fail
        lock cmpxchgl %ecx, other(%rip)         // expect: atomic-update 4 other
        je fail
        xor %eax, %eax
        xor %edx, %edx
        mov $1, %ebx
        mov $2, %ecx
        lock cmpxchg16b pair(%rip)              // expect: atomic-update 16 pair
        jne fail
        lock cmpxchg16b pair(%rip)              // expect: atomic-update 16 pair
        je fail
        lock cmpxchg8b pair(%rip)               // expect: atomic-update 8 pair
        lock incl word(%rip)                    // expect: atomic-update 4 word
        lock decb byte(%rip)                    // expect: atomic-update 1 byte
        lock negw half(%rip)                    // expect: atomic-update 2 half
        lock notq quad(%rip)                    // expect: atomic-update 8 quad
        lock addl $1, word(%rip)                // expect: atomic-update 4 word
        lock subl $2, word(%rip)                // expect: atomic-update 4 word
        lock orl $0, word(%rip)                 // expect: atomic-update 4 word
        lock andl $-1, word(%rip)               // expect: atomic-update 4 word
        lock xorl $0, word(%rip)                // expect: atomic-update 4 word
        lock adcl $0, other(%rip)               // expect: atomic-update 4 other
        lock sbbl $0, other(%rip)               // expect: atomic-update 4 other
        lock btsl $3, bits(%rip)                // expect: atomic-update 4 bits
        lock btrl $3, bits(%rip)                // expect: atomic-update 4 bits
        lock btcq $3, bits(%rip)                // expect: atomic-update 8 bits
        mov $100, %eax
        lock btsl %eax, bits(%rip)              // expect: atomic-update 4 bits+0xc
        ret
        end probe_locked

        function probe_unlocked
        mov $3, %eax
        addl %eax, word(%rip)                   // expect: read 4 word; write 4 word
        add word(%rip), %eax                    // expect: read 4 word
        incw half(%rip)                         // expect: read 2 half; write 2 half
        negb byte(%rip)                         // expect: read 1 byte; write 1 byte
        shlq $1, quad(%rip)                     // expect: read 8 quad; write 8 quad
        xaddl %eax, other(%rip)                 // expect: read 4 other; write 4 other
        mov other(%rip), %eax                   // expect: read 4 other
        cmpxchgl %ecx, other(%rip)              // expect: read 4 other; write 4 other
        btsl $1, bits(%rip)                     // expect: read 4 bits; write 4 bits
        btl $1, bits(%rip)                      // expect: read 4 bits
        movq $-1, %rax
        btsl %eax, bits+16(%rip)                // expect: read 4 bits+0xc; write 4 bits+0xc
        movl $41, word(%rip)                    // expect: write 4 word
        ret
        end probe_unlocked

        function probe_conditional
        xor %eax, %eax
        cmovz word(%rip), %ecx                  // expect: read 4 word
        cmovnz word(%rip), %ecx                 // expect: read 4 word
        setz byte(%rip)                         // expect: write 1 byte
        setnz byte(%rip)                        // expect: write 1 byte
        jnz 1f
        jmp 2f
1:      incl word(%rip)
2:      ret
        end probe_conditional

        function probe_operands
        lea quad(%rip), %rdi
        mov $2, %eax
        movb $1, (%rdi)                         // expect: write 1 quad
        movb $1, 3(%rdi)                        // expect: write 1 quad+0x3
        movzwl 1(%rdi,%rax,2), %ecx             // expect: read 2 quad+0x5
        pushq (%rdi)                            // expect: read 8 quad
        popq quad(%rip)                         // expect: write 8 quad
        push %rbp
        mov %rsp, %rbp
        and $-16, %rsp
        call *target(%rip)                      // expect: read 8 target
        mov %rbp, %rsp
        pop %rbp
        cmpl $0, word(%rip)                     // expect: read 4 word
        testl $1, word(%rip)                    // expect: read 4 word
        movl word(%rip), %eax                   // expect: read 4 word
        movl word(%eip), %ecx                   // expect: read 4 word
        imull $3, word(%rip), %ecx              // expect: read 4 word
        mull word(%rip)                         // expect: read 4 word
        crc32b byte(%rip), %ecx                 // expect: read 1 byte
        popcntl word(%rip), %ecx                // expect: read 4 word
        movnti %ecx, other(%rip)                // expect: write 4 other
        movsbl byte(%rip), %ecx                 // expect: read 1 byte
        lea quad(%rip), %rbx
        mov $3, %al
        xlat                                    // expect: read 1 quad+0x3
        ret
        end probe_operands

// What looks like an operand and is none.
        function probe_nothing
        lea word(%rip), %rax
        nopl word(%rip)
        prefetcht0 word(%rip)
        clflush word(%rip)
        mfence
        endbr64
        ret
        end probe_nothing

        function leaf
        ret
        end leaf

fail:   mov $1, %edi
        call _exit
