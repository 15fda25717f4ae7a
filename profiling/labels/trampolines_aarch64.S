/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines_aarch64.S - the block of trampolines for AArch64 (trampolines.h).
 *
 *     void *trampoline(void *argument, void *(*function)(void *))
 *
 * The argument comes first, so it is where the function wants it. While the function runs, the
 * stack is
 *
 *     higher   link register, signed                the trampoline's frame
 *        A ─▶  frame pointer of the caller
 *              marker                               what scans and frame walks find:
 *        B ─▶  A                                    word i is its own address + 16, word i+1 a marker
 *     lower    the function's frame
 *
 * A frameless function, which every leaf may be, hides its caller from a walk along frame
 * pointers, but not B, whose marker is not signed, and is not the return address: a function's own
 * frame, whose remains are not wiped, may look like B but for that. Afterwards the
 * marker is overwritten: what lies below the stack pointer proves nothing any more. One symbol
 * covers all trampolines, so that a symbolizer sees one function.
 *
 * What unwinds past a trampoline (an exception, the end of a thread) calls its personality,
 * oteli_trampoline_unwound, which overwrites the marker too. */
#include "profiling/labels/trampolines_shape.h"

#if OTELI_HAS_TRAMPOLINES && defined(__aarch64__)

    .section .text.otel_profile_trampoline, "ax", %progbits
    .balign 64
    .globl otel_profile_trampoline
    .type otel_profile_trampoline, %function
    .hidden oteli_trampoline_unwound
otel_profile_trampoline:
    .rept OTELI_TRAMPOLINE_COUNT
    .balign OTELI_TRAMPOLINE_STRIDE
    .cfi_startproc
    .cfi_personality 0x1b, oteli_trampoline_unwound /* relative, four bytes */
    hint #34 /* bti c */
    hint #25 /* paciasp */
    .cfi_negate_ra_state
    stp x29, x30, [sp, #-16]!
    .cfi_def_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    mov x29, sp
    adr x16, 7f
    stp x29, x16, [sp, #-16]!
    .cfi_def_cfa_offset 32
    mov x29, sp
    .cfi_def_cfa_register x29
    blr x1
#ifdef OTELI_TRAMPOLINE_KEEPS_MARKER /* a test's variant, which must be found out */
    nop
#else
    str xzr, [sp, #8]
#endif
7:  ldp x29, x30, [sp, #16]
    .cfi_def_cfa sp, 32
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, #32
    .cfi_def_cfa_offset 0
    hint #29 /* autiasp */
    .cfi_negate_ra_state
    ret
    .cfi_endproc
    .endr
    .org otel_profile_trampoline + OTELI_TRAMPOLINE_COUNT * OTELI_TRAMPOLINE_STRIDE
    .size otel_profile_trampoline, . - otel_profile_trampoline

/* Branches end at a landing pad, and return addresses are signed: without this note the linker
 * would switch both protections off for the whole program. */
    .section .note.gnu.property, "a", %note
    .balign 8
    .word 4          /* length of the name */
    .word 16         /* of what follows it */
    .word 5          /* NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .word 0xc0000000 /* GNU_PROPERTY_AARCH64_FEATURE_1_AND */
    .word 4
    .word 7          /* BTI, PAC, and GCS: each call has its return */
    .word 0
#endif
