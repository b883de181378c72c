// String instructions: repeated ones are one event for the whole stretch, none when the count is
// zero; scans are as long as they ran, which only the end shows (thesis 4.2.5).
//
// watch: memory
// options: --place probe*
// build: gcc -g

#include "asm.h"

        .data
        .balign 64
        variable from 256
        variable to 256

        .text
        function main
        call probe_move
        call probe_backwards
        call probe_store
        call probe_scan
        call probe_compare
        call probe_single
        xor %eax, %eax
        ret
        end main

        .macro both count
        lea from(%rip), %rsi
        lea to(%rip), %rdi
        mov $\count, %ecx
        .endm

        function probe_move
        both 10
        rep movsb                       // expect: read-range 10 from; write-range 10 to
        both 3
        rep movsw                       // expect: read-range 6 from; write-range 6 to
        both 3
        rep movsl                       // expect: read-range 12 from; write-range 12 to
        both 3
        rep movsq                       // expect: read-range 24 from; write-range 24 to
        both 0
        rep movsb
        both 1
        rep movsb                       // expect: read-range 1 from; write-range 1 to
        both 200
        rep movsb                       // expect: read-range 200 from; write-range 200 to
        // One that is interrupted by nothing and goes on where another ended.
        mov $2, %ecx
        rep movsq                       // expect: read-range 16 from+0xc8; write-range 16 to+0xc8
        // In a loop: the same instruction with other counts.
        mov $3, %edx
1:      both 0
        mov %edx, %ecx
        dec %ecx
        rep movsb                       // expect: read-range 2 from; write-range 2 to; read-range 1 from; write-range 1 to
        dec %edx
        jnz 1b
        ret
        end probe_move

        function probe_backwards
        std
        lea from+63(%rip), %rsi
        lea to+63(%rip), %rdi
        mov $4, %ecx
        rep movsb                       // expect: read-range 4 from+0x3c; write-range 4 to+0x3c
        lea from+56(%rip), %rsi
        lea to+56(%rip), %rdi
        mov $3, %ecx
        rep movsq                       // expect: read-range 24 from+0x28; write-range 24 to+0x28
        lea to+56(%rip), %rdi
        mov $3, %ecx
        rep stosq                       // expect: write-range 24 to+0x28
        xor %ecx, %ecx
        rep stosq
        lea to+3(%rip), %rdi
        mov $4, %ecx
        mov $1, %al
        movb $1, to+1(%rip)             // expect: write 1 to+0x1
        repne scasb                     // expect: read-range 3 to+0x1
        cld
        ret
        end probe_backwards

        function probe_store
        lea to(%rip), %rdi
        xor %eax, %eax
        mov $256, %ecx
        rep stosb                       // expect: write-range 256 to
        lea to(%rip), %rdi
        mov $5, %ecx
        rep stosw                       // expect: write-range 10 to
        mov $5, %ecx
        rep stosl                       // expect: write-range 20 to+0xa
        xor %ecx, %ecx
        rep stosl
        lea from(%rip), %rsi
        mov $5, %ecx
        rep lodsb                       // expect: read-range 5 from
        ret
        end probe_store

        function probe_scan
        movb $'x', to+6(%rip)           // expect: write 1 to+0x6
        // Found after seven bytes, of fifty.
        lea to(%rip), %rdi
        mov $'x', %al
        mov $50, %ecx
        repne scasb                     // expect: read-range 7 to
        // Not found: all of it.
        lea to+16(%rip), %rdi
        mov $50, %ecx
        repne scasb                     // expect: read-range 50 to+0x10
        // Nothing to look at.
        xor %ecx, %ecx
        repne scasb
        // While it is equal: six zeros and the x.
        lea to(%rip), %rdi
        xor %eax, %eax
        mov $50, %ecx
        repe scasb                      // expect: read-range 7 to
        lea to(%rip), %rdi
        mov $50, %ecx
        repe scasw                      // expect: read-range 8 to
        // strlen as old compilers wrote it.
        lea to+6(%rip), %rdi
        mov $-1, %rcx
        repne scasb                     // expect: read-range 2 to+0x6
        ret
        end probe_scan

        function probe_compare
        // The seventh byte differs.
        both 50
        repe cmpsb                      // expect: read-range 7 from; read-range 7 to
        both 50
        repe cmpsl                      // expect: read-range 8 from; read-range 8 to
        // The first is equal.
        both 50
        repne cmpsb                     // expect: read-range 1 from; read-range 1 to
        both 0
        repe cmpsb
        ret
        end probe_compare

        function probe_single
        both 9
        movsb                           // expect: read 1 from; write 1 to
        movsw                           // expect: read 2 from+0x1; write 2 to+0x1
        movsl                           // expect: read 4 from+0x3; write 4 to+0x3
        movsq                           // expect: read 8 from+0x7; write 8 to+0x7
        stosb                           // expect: write 1 to+0xf
        stosq                           // expect: write 8 to+0x10
        lodsl                           // expect: read 4 from+0xf
        scasb                           // expect: read 1 to+0x18
        cmpsb                           // expect: read 1 from+0x13; read 1 to+0x19
        ret
        end probe_single
