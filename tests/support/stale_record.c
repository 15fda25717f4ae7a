/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/stale_record.c - see stale_record.h. In assembler, so that no compiler writes into the
 * frame or makes the two calls from different heights of the stack. */
#include "tests/support/stale_record.h"

#if defined(__x86_64__)

/*   stale_apply_and_count(trampoline, function, steps):
 *       keep steps in rbx and the frame pointer on the stack, call trampoline(NULL, function), count
 *   stale_count, called at the same height as the trampoline was:
 *       512 bytes of frame that nobody writes to; rbp counts down, so it is no frame's address */
__asm__(".text\n"
        ".globl stale_apply_and_count\n"
        ".type stale_apply_and_count, @function\n"
        "stale_apply_and_count:\n"
        ".cfi_startproc\n"
        "push %rbx\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbx, -16\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 24\n"
        ".cfi_offset %rbp, -24\n"
        "sub $8, %rsp\n"
        ".cfi_def_cfa_offset 32\n"
        "mov %rdx, %rbx\n"
        "mov %rdi, %rax\n"
        "xor %edi, %edi\n"
        "call *%rax\n"
        "call stale_count\n"
        "add $8, %rsp\n"
        ".cfi_def_cfa_offset 24\n"
        "pop %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        "pop %rbx\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size stale_apply_and_count, . - stale_apply_and_count\n"
        ".type stale_count, @function\n"
        "stale_count:\n"
        "sub $512, %rsp\n"
        "mov %rbx, %rbp\n"
        "1: dec %rbp\n"
        "jnz 1b\n"
        "add $512, %rsp\n"
        "ret\n"
        "stale_count_end:\n"
        ".size stale_count, . - stale_count\n");

extern const char stale_count[];
extern const char stale_count_end[];

bool stale_is_possible(void)
{
    return true;
}

bool stale_is_counting(uint64_t address)
{
    return address >= (uintptr_t)stale_count && address < (uintptr_t)stale_count_end;
}

#else

bool stale_is_possible(void)
{
    return false;
}

bool stale_is_counting(uint64_t address)
{
    (void)address;
    return false;
}

void stale_apply_and_count(void *(*trampoline)(void *, void *(*)(void *)),
                           void *(*function)(void *), uint64_t steps)
{
    (void)trampoline;
    (void)function;
    (void)steps;
}

#endif
