/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines_x86_64.S - the block of trampolines for x86-64 (trampolines.h).
 *
 *     void *trampoline(void *argument, void *(*function)(void *))
 *
 * The argument comes first, so it is where the function wants it. While the function runs, the
 * stack is
 *
 *     higher   return address to the caller
 *        A ─▶  frame pointer of the caller         the trampoline's frame
 *              marker                              what scans and frame walks find:
 *        B ─▶  A                                   word i is its own address + 16, word i+1 a marker
 *              return address to the trampoline
 *     lower    the function's frame
 *
 * so that a walk along frame pointers meets B also when the function has no frame of its own or
 * uses the register for something else above it. The marker is not the return address: a
 * function's own frame, whose remains are not wiped, may look like B but for that.
 * Afterwards the marker is overwritten, below the stack pointer, where nothing reads it soon: what
 * lies there proves nothing any more. One symbol covers all trampolines, so
 * that a symbolizer sees one function.
 *
 * What unwinds past a trampoline (an exception, the end of a thread) calls its personality,
 * oteli_trampoline_unwound, which overwrites the marker too. */
#include "profiling/labels/trampolines_shape.h"

#if OTELI_HAS_TRAMPOLINES && defined(__x86_64__)

    .section .text.otel_profile_trampoline, "ax", @progbits
    .balign 64
    .globl otel_profile_trampoline
    .type otel_profile_trampoline, @function
    .hidden oteli_trampoline_unwound
otel_profile_trampoline:
    .rept OTELI_TRAMPOLINE_COUNT
    .balign OTELI_TRAMPOLINE_STRIDE, 0xcc
    .cfi_startproc
    .cfi_personality 0x1b, oteli_trampoline_unwound /* relative, four bytes */
    endbr64
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    lea 7f(%rip), %rax
    push %rax
    push %rbp
    mov %rsp, %rbp
    .cfi_def_cfa_offset 32
    call *%rsi
    pop %rcx /* off the stack, without waiting for what is on it */
    pop %rcx
    pop %rbp
    .cfi_restore %rbp
    .cfi_def_cfa %rsp, 8
7:
#ifdef OTELI_TRAMPOLINE_KEEPS_MARKER /* a test's variant, which must be found out */
    nopl (%rax)
#else
    mov %rsp, -16(%rsp)
#endif
    ret
    .cfi_endproc
    .endr
    .org otel_profile_trampoline + OTELI_TRAMPOLINE_COUNT * OTELI_TRAMPOLINE_STRIDE
    .size otel_profile_trampoline, . - otel_profile_trampoline

/* Indirect branches end at endbr64, and each call has its return: without this note the linker
 * would switch both protections off for the whole program. */
    .section .note.gnu.property, "a", @note
    .balign 8
    .long 4          /* length of the name */
    .long 16         /* of what follows it */
    .long 5          /* NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long 0xc0000002 /* GNU_PROPERTY_X86_FEATURE_1_AND */
    .long 4
    .long 3          /* IBT, SHSTK */
    .long 0
#endif
