// Memory relative to fs, as thread-local variables are: the program is without a C library, so that
// it can point fs at a variable whose name is known. (String instructions with an fs prefix, which no
// compiler makes, are more than the engine takes: it crashes on them.)
//
// watch: memory
// options: --place probe*
// build: gcc -g -nostdlib -static

#include "asm.h"
#include <asm/prctl.h>
#include <asm/unistd.h>

        .data
        .balign 64
        variable local 128

        .text
        function _start
        mov $ARCH_SET_FS, %edi
        lea local+64(%rip), %rsi
        mov $__NR_arch_prctl, %eax
        syscall
        call probe_segment
        mov $__NR_exit_group, %eax
        xor %edi, %edi
        syscall
        end _start

        function probe_segment
        mov %fs:0x28, %rax                      // expect: read 8 local+0x68
        movl $5, %fs:-8                         // expect: write 4 local+0x38
        mov $-16, %rdi
        mov %fs:4(%rdi), %eax                   // expect: read 4 local+0x34
        incl %fs:(%rdi)                         // expect: read 4 local+0x30; write 4 local+0x30
        lock incl %fs:(%rdi)                    // expect: atomic-update 4 local+0x30
        mov $2, %ecx
        movups %fs:-64(%rdi,%rcx,8), %xmm0      // expect: read 16 local
        ret
        end probe_segment
