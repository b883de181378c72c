// Sized symbols for assembly programs: variables and functions that a symbol table knows.

        .macro variable name size
        .globl \name
        .type \name, @object
        .size \name, \size
\name:  .zero \size
        .endm

        .macro function name
        .globl \name
        .type \name, @function
\name:
        .endm

        .macro end name
        .size \name, . - \name
        .endm

        .section .note.GNU-stack, "", @progbits
        .text
