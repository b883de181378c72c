// Functions that are left by a jump into another (thesis 4.2.2, figure 4.1): an unlock that is a
// tail call, a lock that is one too, and hooked functions that jump to each other, which count once.
//
// watch: sync function
// hooks: tail_call.toml
// build: gcc -g -pthread
// build: gcc -g -pthread -static

#include "asm.h"

        .bss
        .balign 64
        variable mutex 40

        .text
        function main
        sub $8, %rsp
        lea mutex(%rip), %rdi
        call acquire                    // expect: function-enter acquire
                                        // expect: function-enter pthread_mutex_lock
                                        // expect: lock-requested mutex; lock-acquired mutex
                                        // expect: function-exit pthread_mutex_lock = 0
                                        // expect: function-exit acquire = 0
        lea mutex(%rip), %rdi
        call give_up                    // expect: function-enter pthread_mutex_unlock; lock-released mutex; function-exit pthread_mutex_unlock = 0
        // A tail call out of a hooked function of another kind is that function's call.
        lea mutex(%rip), %rdi
        call acquire                    // expect: function-enter acquire
                                        // expect: function-enter pthread_mutex_lock
                                        // expect: lock-requested mutex; lock-acquired mutex
                                        // expect: function-exit pthread_mutex_lock = 0
                                        // expect: function-exit acquire = 0
        lea mutex(%rip), %rdi
        call release                    // expect: function-enter release
                                        // expect: function-enter pthread_mutex_unlock
                                        // expect: lock-released mutex
                                        // expect: function-exit pthread_mutex_unlock = 0
                                        // expect: function-exit release = 0
        // An opaque function that jumps to its callback, which is left by a tail call.
        lea mutex(%rip), %rdi
        call acquire                    // expect: function-enter acquire
                                        // expect: function-enter pthread_mutex_lock
                                        // expect: lock-requested mutex; lock-acquired mutex
                                        // expect: function-exit pthread_mutex_lock = 0
                                        // expect: function-exit acquire = 0
        lea give_up(%rip), %rsi
        lea mutex(%rip), %rdi
        call hand_over                  // expect: function-enter hand_over
                                        // expect: function-enter pthread_mutex_unlock
                                        // expect: lock-released mutex
                                        // expect: function-exit pthread_mutex_unlock = 0
                                        // expect: function-exit hand_over = 0
        // One call, although two hooked functions are entered: the second by a jump.
        mov $5, %edi
        call first                      // expect: function-enter first 5; function-exit first = 7
        call second                     // expect: function-enter second; function-exit second = 7
        // Falls into the function behind it.
        call falls                      // expect: function-enter falls; function-exit falls = 7
        xor %eax, %eax
        add $8, %rsp
        ret
        end main

// A hooked function that calls, and is no jump.
        function acquire
        sub $8, %rsp
        call pthread_mutex_lock@PLT
        add $8, %rsp
        ret
        end acquire

        function release
        jmp pthread_mutex_unlock@PLT
        end release

        function give_up
        jmp pthread_mutex_unlock@PLT
        end give_up

        function hand_over
        jmp *%rsi
        end hand_over

        function first
        inc %edi
        jmp second
        end first

        function falls
        nop
        end falls

        function second
        mov $7, %eax
        ret
        end second
