/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_ring.c - what perf_event_open is asked for, rings, and their records. The
 * profiler's thread. */
#include "profiling/perf/perf_ring.h"

#include "common/base/atomic.h"
#include "common/clock/time_units.h"
#include "common/os/descriptor.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

/* The stack pointer, by which a copy of the stack is known to be where it was. */
#if defined(__x86_64__)
static const uint64_t stack_pointer = UINT64_C(1) << PERF_REG_X86_SP;
#elif defined(__aarch64__)
static const uint64_t stack_pointer = UINT64_C(1) << PERF_REG_ARM64_SP;
#else
static const uint64_t stack_pointer = 0; /* stacks are not copied */
#endif

/* A quarter of it is enough for what is read 20 times a second at 99 Hz. */
enum { RING_LEAST = 16 * 1024, STACK_MOST = 32 * 1024 };

#define MONOTONIC "monotonic"

/* After so many bytes the kernel would wake a thread that polls, by one more interrupt of the
 * sampled thread. */
enum { NEVER = 1 << 30 };

static int perf_open(const struct perf_event_attr *attributes, pid_t thread, int cpu)
{
    const int event = oteli_descriptor_lift((int)syscall(
        SYS_perf_event_open, attributes, thread, cpu, -1, (unsigned long)PERF_FLAG_FD_CLOEXEC));
    return event >= 0 ? event : -errno;
}

struct oteli_perf_format oteli_perf_format(const struct oteli_source_options *options)
{
    return (struct oteli_perf_format){.process = getpid(),
                                      .has_stack = options->stack_bytes != 0 && stack_pointer != 0};
}

/* Events that share a ring share a clock. No thread waits for a ring to be filled. */
static struct perf_event_attr attributes_of(uint64_t event)
{
    return (struct perf_event_attr){.size = sizeof(struct perf_event_attr),
                                    .type = PERF_TYPE_SOFTWARE,
                                    .config = event,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1,
                                    .watermark = 1,
                                    .wakeup_watermark = NEVER,
                                    .use_clockid = 1,
                                    .clockid = CLOCK_MONOTONIC};
}

int oteli_perf_open(const struct oteli_source_options *options, pid_t thread, int cpu)
{
    struct perf_event_attr attributes = attributes_of(PERF_COUNT_SW_TASK_CLOCK);
    attributes.sample_period = options->period_ns;
    attributes.sample_type =
        PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_CALLCHAIN;
    attributes.exclude_callchain_kernel = 1;
    attributes.sample_max_stack = OTELI_FRAMES_MAX;
    attributes.inherit = 1;
    attributes.inherit_thread = 1;
    if (oteli_perf_format(options).has_stack) {
        const uint32_t bytes =
            options->stack_bytes < STACK_MOST ? options->stack_bytes : (uint32_t)STACK_MOST;
        attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attributes.sample_regs_user = stack_pointer;
        attributes.sample_stack_user = (bytes + 7) & ~UINT32_C(7);
    }
    int event = perf_open(&attributes, thread, cpu);
    if (event == -EOVERFLOW) { /* deeper than kernel.perf_event_max_stack */
        attributes.sample_max_stack = 0;
        event = perf_open(&attributes, thread, cpu);
    }
    return event;
}

int oteli_perf_open_silent(int cpu)
{
    const struct perf_event_attr attributes = attributes_of(PERF_COUNT_SW_DUMMY);
    return perf_open(&attributes, 0, cpu);
}

/* Locked memory is a budget of the user's, which other processes of his have a part in. */
int oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t size = page;
    while (size < bytes)
        size *= 2;
    for (;; size /= 2) {
        void *mapping = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
        if (mapping != MAP_FAILED) {
            *ring = (struct oteli_perf_ring){.event = event, .page = mapping, .size = size};
            return 0;
        }
        if (errno != EPERM || size <= RING_LEAST || size == page)
            return -errno;
    }
}

/* --- what the kernel writes --- */

/* Behind the header of PERF_RECORD_SAMPLE: what perf_ring.c asks for, in the kernel's order. */
struct sample_body {
    uint32_t process;
    uint32_t thread;
    uint64_t time_ns;
    uint64_t event;
    uint64_t frame_count;
    uint64_t frames[];
};

/* Behind the header of PERF_RECORD_LOST. */
struct lost_body {
    uint64_t event;
    uint64_t count;
};

/* Which kind of registers there are, the stack pointer, the size of the copy, its bytes, and how
 * many of these are there. */
static void add_stack(struct oteli_sample *sample, const uint64_t *at)
{
    const uint64_t *size = at + (at[0] != PERF_SAMPLE_REGS_ABI_NONE ? 2 : 1);
    const uint64_t *bytes = size + 1;
    if (at[0] != PERF_SAMPLE_REGS_ABI_64 || *size == 0 || bytes[*size / sizeof *bytes] == 0)
        return;
    sample->stack = bytes;
    sample->stack_size = (size_t)bytes[*size / sizeof *bytes];
    sample->stack_address = at[1];
}

/* The chain has marks in it that say whose addresses follow; only user mode is asked for. */
static void read_sample(struct oteli_perf_reader *reader, const struct sample_body *body)
{
    uint64_t frames[OTELI_FRAMES_MAX];
    struct oteli_sample sample = {.time_ns =
                                      body->time_ns + (uint64_t)reader->format.clock_offset_ns,
                                  .periods = 1,
                                  .thread = (pid_t)body->thread,
                                  .frames = frames};
    for (uint64_t i = 0; i < body->frame_count && sample.depth < OTELI_FRAMES_MAX; i++)
        if (body->frames[i] < (uint64_t)PERF_CONTEXT_MAX)
            frames[sample.depth++] = body->frames[i];
    if (reader->format.has_stack)
        add_stack(&sample, body->frames + body->frame_count);
    if ((pid_t)body->process == reader->format.process && sample.depth != 0)
        reader->take(reader->state, body->event, &sample);
}

static void read_record(struct oteli_perf_reader *reader, uint32_t type, const void *body)
{
    switch (type) {
    case PERF_RECORD_SAMPLE:
        read_sample(reader, body);
        break;
    case PERF_RECORD_LOST:
        *reader->lost += ((const struct lost_body *)body)->count;
        break;
    case PERF_RECORD_THROTTLE: /* the kernel found that it was too much; how much, it does not
                                  say */
        ++*reader->lost;
        break;
    default:
        break;
    }
}

/* A record that goes over the end of the ring is put together. */
static const uint64_t *in_one_piece(struct oteli_perf_reader *reader, const uint8_t *ring,
                                    uint64_t size, uint64_t offset, uint64_t length)
{
    if (length <= size - offset)
        return (const uint64_t *)(const void *)(ring + offset);
    const size_t first = (size_t)(size - offset);
    memcpy(reader->scratch, ring + offset, first);
    memcpy((uint8_t *)reader->scratch + first, ring, (size_t)length - first);
    return reader->scratch;
}

void oteli_perf_read(struct oteli_perf_reader *reader, const void *ring, uint64_t size,
                     uint64_t tail, uint64_t head)
{
    bool is_sound = head - tail <= size;
    while (is_sound && tail != head) {
        struct perf_event_header header;
        const uint64_t offset = tail & (size - 1);
        memcpy(&header, (const uint8_t *)ring + offset, sizeof header);
        is_sound = header.size >= sizeof header && header.size <= head - tail &&
                   header.size % sizeof(uint64_t) == 0;
        if (is_sound)
            read_record(reader, header.type,
                        in_one_piece(reader, ring, size, offset, header.size) + 1);
        tail += header.size;
    }
    if (!is_sound)
        ++*reader->lost;
}

void oteli_perf_ring_read(const struct oteli_perf_ring *ring, struct oteli_perf_reader *reader)
{
    struct perf_event_mmap_page *page = ring->page;
    uint64_t *tail = (uint64_t *)(void *)&page->data_tail;
    /* Pairs with the kernel's barrier before it moves the head. */
    const uint64_t head = oteli_load_acquire_64((const uint64_t *)(const void *)&page->data_head);
    const uint64_t before = oteli_load_relaxed_64(tail);
    if (before == head)
        return;
    const uint8_t *bytes = (const uint8_t *)page + sysconf(_SC_PAGESIZE);
    oteli_perf_read(reader, bytes, ring->size, before, head);
    /* Everything has been read before the kernel may write there. */
    oteli_store_release_64(tail, head);
}

void oteli_perf_close(int event)
{
    if (event < 0)
        return;
    ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
    close(event);
}

void oteli_perf_ring_close(struct oteli_perf_ring *ring)
{
    if (ring->page != NULL)
        munmap(ring->page, (size_t)sysconf(_SC_PAGESIZE) + (size_t)ring->size);
    oteli_perf_close(ring->event);
    *ring = (struct oteli_perf_ring){.event = -1};
}

int oteli_perf_clock_offset(int64_t *offset_ns)
{
    char text[64];
    struct stat own;
    struct stat of_children;
    *offset_ns = 0;
    if (stat("/proc/self/ns/time", &own) != 0)
        return 0; /* a kernel that has no such namespaces */
    /* What can be read is the offset of the children's, which are in another one if the process has
     * made that since it began. */
    if (stat("/proc/self/ns/time_for_children", &of_children) != 0 ||
        own.st_ino != of_children.st_ino)
        return EOPNOTSUPP;
    FILE *offsets = fopen("/proc/self/timens_offsets", "re");
    if (offsets == NULL)
        return errno;
    const bool is_read = fgets(text, sizeof text, offsets) != NULL;
    fclose(offsets);
    if (!is_read || strncmp(text, MONOTONIC, sizeof MONOTONIC - 1) != 0)
        return EOPNOTSUPP;
    char *at = text + sizeof MONOTONIC - 1; /* seconds and nanoseconds, which are never negative */
    const long long seconds = strtoll(at, &at, 10);
    *offset_ns = seconds * (int64_t)OTELI_NS_PER_S + strtoll(at, &at, 10);
    return 0;
}

void oteli_perf_online(char text[OTELI_PERF_ONLINE_BYTES])
{
    FILE *file = fopen("/sys/devices/system/cpu/online", "re");
    const bool is_read = file != NULL && fgets(text, OTELI_PERF_ONLINE_BYTES, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (!is_read)
        snprintf(text, OTELI_PERF_ONLINE_BYTES, "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
}

size_t oteli_perf_budget(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (size_t)limit.rlim_cur / 2 : 512;
}
