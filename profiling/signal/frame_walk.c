/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/frame_walk.c - see frame_walk.h. In signal handlers of any thread.
 *
 * A frame record is the same on both machines: {address of the caller's record, return address}. A
 * function that uses the frame pointer for something else leaves a number there that may be
 * anything, so a record counts only above the one before it and inside of the stack. */
#include "profiling/signal/frame_walk.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))

enum {
    PAGE_BYTES = 4096, /* or a part of one */
    LEAST_CODE = 4096,
    NEAR_BYTES = 1 << 16,
    PIECES = OTELI_STACK_COPY_BYTES / PAGE_BYTES + 2
};

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

/* A word that is known to be there. Other threads' objects, as far as sanitizers know. */
UNCHECKED static uint64_t load(uint64_t address)
{
    return *(const volatile uint64_t *)(uintptr_t)address;
}

static uint64_t page_end(uint64_t address)
{
    return address - address % PAGE_BYTES + PAGE_BYTES;
}

/* Up to so many bytes from there on; how many there are. In pieces, because the kernel need not
 * copy a part of one. */
static uint64_t copy_memory(pid_t process, uint64_t address, uint64_t size, uint64_t *to)
{
    struct iovec pieces[PIECES];
    const struct iovec whole = {.iov_base = to, .iov_len = size};
    const uint64_t end = address + size;
    unsigned long count = 0;
    for (uint64_t at = address; at < end; count++) {
        const uint64_t next = page_end(at) < end ? page_end(at) : end;
        pieces[count] =
            (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = (size_t)(next - at)};
        at = next;
    }
    const long copied =
        syscall(SYS_process_vm_readv, (long)process, &whole, 1UL, pieces, count, 0UL);
    return copied > 0 ? (uint64_t)copied : 0;
}

int oteli_stack_view_refused(void)
{
    const uint64_t word = LEAST_CODE;
    uint64_t copy = 0;
    errno = 0;
    (void)copy_memory(getpid(), (uint64_t)(uintptr_t)&word, sizeof word, &copy);
    return copy == word ? 0 : errno;
}

/* A handler that runs below `sp` runs on the same stack, which is there, and with it the page that
 * `sp` points into the midst of. One that runs elsewhere does not know whether `sp` is a
 * stack's. */
void oteli_stack_view_begin(struct oteli_stack_view *view, uint64_t sp, uint64_t high)
{
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const bool is_own = sp > here && sp - here < NEAR_BYTES && sp % PAGE_BYTES != 0 && sp < high;
    const uint64_t own_high = page_end(sp) < high ? page_end(sp) : high;
    view->own_low = sp;
    view->own_size = is_own ? own_high - sp : 0;
    view->high = high;
    view->copied_low = sp;
    view->copied_size = 0;
}

/* Whether a word of these bytes is at this address. */
static bool has_word(uint64_t low, uint64_t size, uint64_t address)
{
    return size >= sizeof(uint64_t) && address - low <= size - sizeof(uint64_t);
}

bool oteli_stack_view_word(struct oteli_stack_view *view, uint64_t address, uint64_t *word)
{
    if (address % sizeof(uint64_t) != 0 || address < view->own_low || address >= view->high ||
        view->high - address < sizeof(uint64_t))
        return false;
    if (has_word(view->own_low, view->own_size, address)) {
        *word = load(address);
        return true;
    }
    if (!has_word(view->copied_low, view->copied_size, address)) {
        const uint64_t left = view->high - address;
        view->copied_low = address;
        view->copied_size =
            copy_memory(view->process, address, left < sizeof view->copy ? left : sizeof view->copy,
                        view->copy);
        if (!has_word(view->copied_low, view->copied_size, address))
            return false;
    }
    *word = view->copy[(address - view->copied_low) / sizeof(uint64_t)];
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

size_t oteli_frame_walk(const struct oteli_registers *registers, struct oteli_stack_view *view,
                        size_t most, uint64_t *frames)
{
    uint64_t fp = registers->fp;
    uint64_t least = registers->sp;
    size_t count = 0;
    while (count < most && fp >= least) {
        uint64_t next;
        uint64_t address;
        if (!oteli_stack_view_word(view, fp, &next) ||
            !oteli_stack_view_word(view, fp + sizeof(uint64_t), &address))
            break;
        address = without_signature(address);
        if (address < LEAST_CODE)
            break;
        frames[count++] = address;
        least = fp + 2 * sizeof(uint64_t);
        fp = next;
    }
    return count;
}
