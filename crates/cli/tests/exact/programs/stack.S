// What instructions do to the stack beside their operands: here the stack is a variable, so that
// every push has a name.
//
// watch: memory
// options: --place probe*
// build: gcc -g

#include "asm.h"

        .data
        .balign 64
        variable area 512
        variable saved 8
        variable word 8
        .type pointer, @object
        .size pointer, 8
pointer: .quad leaf

        .text
        function main
        push %rbp
        push %rbx
        sub $8, %rsp
        mov %rsp, saved(%rip)
        lea area+512(%rip), %rsp
        call probe_stack
        mov saved(%rip), %rsp
        add $8, %rsp
        pop %rbx
        pop %rbp
        xor %eax, %eax
        ret
        end main

        function leaf
        ret
        end leaf

// The return address is at area+0x1f8.
        function probe_stack
        push %rax                       // expect: write 8 area+0x1f0
        push $1                         // expect: write 8 area+0x1e8
        pushw $1                        // expect: write 2 area+0x1e6
        popw %cx                        // expect: read 2 area+0x1e6
        pop %rcx                        // expect: read 8 area+0x1e8
        pushq word(%rip)                // expect: read 8 word; write 8 area+0x1e8
        popq word(%rip)                 // expect: read 8 area+0x1e8; write 8 word
        pushf                           // expect: write 8 area+0x1e8
        popf                            // expect: read 8 area+0x1e8
        push %rsp                       // expect: write 8 area+0x1e8
        pop %rsp                        // expect: read 8 area+0x1e8
        mov (%rsp), %rax                // expect: read 8 area+0x1f0
        mov %rax, -8(%rsp)              // expect: write 8 area+0x1e8
        lock orl $0, (%rsp)             // expect: atomic-update 4 area+0x1f0
        call leaf                       // expect: write 8 area+0x1e8
        call *pointer(%rip)             // expect: read 8 pointer; write 8 area+0x1e8
        lea leaf(%rip), %rax
        call *%rax                      // expect: write 8 area+0x1e8
        mov %rsp, %rbp
        enter $16, $0                   // expect: write 8 area+0x1e8
        push %rbx                       // expect: write 8 area+0x1d0
        leave                           // expect: read 8 area+0x1e8
        call probe_pops                 // expect: write 8 area+0x1e8
                                        // expect: read 8 area+0x1e8
        mov -8(%rsp), %rax              // expect: read 8 area+0x1f0
        ret                             // expect: read 8 area+0x1f8
        end probe_stack

        function probe_pops
        ret $8
        end probe_pops
