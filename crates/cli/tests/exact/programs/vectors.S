// Vectors, the x87 stack and state areas, at their true sizes and alignments.
//
// watch: memory
// options: --place probe*
// build: gcc -g

#include "asm.h"

        .data
        .balign 64
        variable from 256
        variable to 256
        variable mask 16

        .text
        function main
        sub $8, %rsp
        movb $0x80, mask+1(%rip)
        movb $0x80, mask+2(%rip)
        movb $0x80, mask+9(%rip)
        call probe_sse
        call probe_maskmov
        call probe_x87
        call probe_state
        xor %eax, %eax
        add $8, %rsp
        ret
        end main

        function probe_sse
        movaps from(%rip), %xmm0                // expect: read 16 from
        movups from+3(%rip), %xmm0              // expect: read 16 from+0x3
        movups %xmm0, to+60(%rip)               // expect: write 16 to+0x3c
        movdqu %xmm0, to+1(%rip)                // expect: write 16 to+0x1
        movss from(%rip), %xmm0                 // expect: read 4 from
        movsd from(%rip), %xmm0                 // expect: read 8 from
        movq %xmm0, to(%rip)                    // expect: write 8 to
        movd %xmm0, to(%rip)                    // expect: write 4 to
        movlps from+8(%rip), %xmm0              // expect: read 8 from+0x8
        movhps %xmm0, to+8(%rip)                // expect: write 8 to+0x8
        paddd from(%rip), %xmm0                 // expect: read 16 from
        addss from+4(%rip), %xmm0               // expect: read 4 from+0x4
        pinsrw $1, from(%rip), %xmm0            // expect: read 2 from
        pextrb $1, %xmm0, to(%rip)              // expect: write 1 to
        movntdq %xmm0, to+16(%rip)              // expect: write 16 to+0x10
        lddqu from+5(%rip), %xmm1               // expect: read 16 from+0x5
        cvtsi2sdl from(%rip), %xmm0             // expect: read 4 from
        pmovzxbd from(%rip), %xmm0              // expect: read 4 from
        ret
        end probe_sse

// Only the bytes whose mask bit is set: 1, 2 and 9.
        function probe_maskmov
        movdqu mask(%rip), %xmm1                // expect: read 16 mask
        lea to(%rip), %rdi
        maskmovdqu %xmm1, %xmm0                 // expect: write 2 to+0x1; write 1 to+0x9
        pxor %xmm1, %xmm1
        maskmovdqu %xmm1, %xmm0
        ret
        end probe_maskmov

        function probe_x87
        fldt from(%rip)                         // expect: read 10 from
        fstpt to(%rip)                          // expect: write 10 to
        fldl from(%rip)                         // expect: read 8 from
        fstps to(%rip)                          // expect: write 4 to
        fildq from(%rip)                        // expect: read 8 from
        fistps to(%rip)                         // expect: write 2 to
        fbld from(%rip)                         // expect: read 10 from
        fbstp to(%rip)                          // expect: write 10 to
        fnstcw to(%rip)                         // expect: write 2 to
        fldcw to(%rip)                          // expect: read 2 to
        stmxcsr to(%rip)                        // expect: write 4 to
        ldmxcsr to(%rip)                        // expect: read 4 to
        ret
        end probe_x87

        function probe_state
        fxsave64 area(%rip)                     // expect: write 512 area
        fxrstor64 area(%rip)                    // expect: read 512 area
        fnstenv area(%rip)                      // expect: write 28 area
        ret
        end probe_state

        .bss
        .balign 64
        variable area 1024
