// Wide vectors, gathers and masked moves: the lanes that are touched, and no others.
//
// watch: memory
// options: --place probe*
// needs: avx2
// build: gcc -g

#include "asm.h"

        .data
        .balign 64
        variable from 256
        variable to 256
        .balign 32
        .type indexes, @object
        .size indexes, 32
indexes: .long 0, 3, 5, 7, 2, 60, 1, 9
        .type lanes, @object
        .size lanes, 32
// Lanes 1, 2 and 5.
lanes:  .long 0, -1, -1, 0, 0, -1, 0, 0
        .type none, @object
        .size none, 32
none:   .long 0, 0, 0, 0, 0, 0, 0, 0
        .type quads, @object
        .size quads, 32
quads:  .quad 1, 4, -1, 8

        .text
        function main
        call probe_wide
        call probe_masked
        call probe_gather
        vzeroupper
        xor %eax, %eax
        ret
        end main

        function probe_wide
        vmovups from+1(%rip), %ymm0             // expect: read 32 from+0x1
        vmovaps %ymm0, to(%rip)                 // expect: write 32 to
        vmovdqu %xmm0, to+7(%rip)               // expect: write 16 to+0x7
        vaddps from(%rip), %ymm0, %ymm1         // expect: read 32 from
        vbroadcastss from+4(%rip), %ymm1        // expect: read 4 from+0x4
        vbroadcastf128 from+16(%rip), %ymm1     // expect: read 16 from+0x10
        vextracti128 $1, %ymm0, to(%rip)        // expect: write 16 to
        vinserti128 $1, from(%rip), %ymm0, %ymm0 // expect: read 16 from
        vmovntdq %ymm0, to(%rip)                // expect: write 32 to
        ret
        end probe_wide

        function probe_masked
        vmovdqa lanes(%rip), %ymm1              // expect: read 32 lanes
        vmaskmovps from(%rip), %ymm1, %ymm2     // expect: read 8 from+0x4; read 4 from+0x14
        vmaskmovps %ymm2, %ymm1, to(%rip)       // expect: write 8 to+0x4; write 4 to+0x14
        vpmaskmovd from(%rip), %xmm1, %xmm2     // expect: read 8 from+0x4
        vpmaskmovq %xmm2, %xmm1, to(%rip)       // expect: write 8 to
        vmovdqa none(%rip), %ymm1               // expect: read 32 none
        vmaskmovps from(%rip), %ymm1, %ymm2
        vmaskmovps %ymm2, %ymm1, to(%rip)
        ret
        end probe_masked

        function probe_gather
        lea from(%rip), %rsi
        vmovdqa indexes(%rip), %ymm0            // expect: read 32 indexes
        vmovdqa lanes(%rip), %ymm1              // expect: read 32 lanes
        vpgatherdd %ymm1, (%rsi,%ymm0,4), %ymm2 // expect: read 4 from+0xc; read 4 from+0x14; read 4 from+0xf0
        // The mask is used up now: nothing.
        vpgatherdd %ymm1, (%rsi,%ymm0,4), %ymm2
        vpcmpeqd %xmm1, %xmm1, %xmm1
        vpgatherdd %xmm1, (%rsi,%xmm0,4), %xmm2 // expect: read 4 from; read 4 from+0xc; read 4 from+0x14; read 4 from+0x1c
        vmovdqa quads(%rip), %ymm0              // expect: read 32 quads
        vpcmpeqd %ymm1, %ymm1, %ymm1
        vgatherqpd %ymm1, 16(%rsi,%ymm0,8), %ymm2 // expect: read 8 from+0x18; read 8 from+0x30; read 8 from+0x8; read 8 from+0x50
        ret
        end probe_gather
