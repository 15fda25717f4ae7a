/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/frame_walk.c - see frame_walk.h. In signal handlers of any thread.
 *
 * A frame record is the same on both machines: {address of the caller's record, return address}. A
 * function that uses the frame pointer for something else leaves a number there that may be anything,
 * so a record counts only above the one before it and inside of the stack. */
#include "profiling/frame_walk.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

enum { NO_ACTION = 0x7fff, PAGE_BYTES = 4096, LEAST_CODE = 4096 };

bool oteli_registers_of(const void *context, struct oteli_registers *registers)
{
#if defined(__linux__) && defined(__x86_64__)
    const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
    registers->pc = (uint64_t)machine->gregs[REG_RIP];
    registers->sp = (uint64_t)machine->gregs[REG_RSP];
    registers->fp = (uint64_t)machine->gregs[REG_RBP];
    return true;
#elif defined(__linux__) && defined(__aarch64__)
    const mcontext_t *machine = &((const ucontext_t *)context)->uc_mcontext;
    registers->pc = machine->pc;
    registers->sp = machine->sp;
    registers->fp = machine->regs[29];
    return true;
#else
    (void)context;
    (void)registers;
    return false;
#endif
}

/* The kernel reads a set of signals before it looks at what is to be done with it, which here is
 * nothing that exists. */
static bool is_readable(uint64_t address)
{
    return syscall(SYS_rt_sigprocmask, NO_ACTION, (void *)(uintptr_t)address, NULL,
                   sizeof(uint64_t)) == 0 ||
           errno != EFAULT;
}

/* A word that is known to be readable. Other threads' objects, as far as sanitizers know. */
UNCHECKED static uint64_t load(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

bool oteli_word_at(uint64_t address, uint64_t *word)
{
    if (address % sizeof(uint64_t) != 0 || !is_readable(address))
        return false;
    *word = load(address);
    return true;
}

/* A return address may be signed (AArch64, -mbranch-protection). */
static uint64_t without_signature(uint64_t address)
{
#if defined(__aarch64__)
    register uint64_t link __asm__("x30") = address;
    __asm__("hint #7" : "+r"(link)); /* xpaclri */
    return link;
#else
    return address;
#endif
}

size_t oteli_frame_walk(const struct oteli_registers *registers, uint64_t high, size_t most,
                        oteli_take_frame *take, void *state)
{
    const uint64_t record_bytes = 2 * sizeof(uint64_t);
    uint64_t readable = UINT64_MAX; /* the page that has been asked for */
    uint64_t fp = registers->fp;
    uint64_t least = registers->sp;
    size_t count = 0;
    while (count < most && fp >= least && fp % sizeof(uint64_t) == 0 && fp < high &&
           high - fp >= record_bytes) {
        const uint64_t last_page = (fp + record_bytes - 1) / PAGE_BYTES;
        if (fp / PAGE_BYTES != readable && !is_readable(fp))
            break;
        if (last_page != fp / PAGE_BYTES && !is_readable(fp + sizeof(uint64_t)))
            break;
        readable = last_page;
        const uint64_t next = load(fp);
        const uint64_t address = without_signature(load(fp + sizeof(uint64_t)));
        if (address < LEAST_CODE)
            break;
        take(state, count++, address);
        least = fp + record_bytes;
        fp = next;
    }
    return count;
}
