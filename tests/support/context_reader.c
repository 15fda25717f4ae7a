/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_reader.c - attaches to a process, and reads its threads' records.
 *
 * Threads:  the one that opened the reader: what it traces, no other may ask about. */
#include "tests/support/context_inside.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD_SIZE = 28, RECORD_MOST = 640 };

enum context_found context_fault(struct context_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, sizeof reader->why, format, arguments);
    va_end(arguments);
    return CONTEXT_FAULT;
}

const char *context_reader_why(const struct context_reader *reader)
{
    return reader->why;
}

void context_reader_misplace(struct context_reader *reader, int64_t bytes)
{
    reader->misplaced = bytes;
}

bool context_read(const struct context_reader *reader, uint64_t address, void *bytes, size_t size)
{
    struct iovec here = {bytes, size};
    struct iovec there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(reader->process, &here, 1, &there, 1, 0) == (ssize_t)size;
}

bool context_next_mapping(const struct context_reader *reader, void **at,
                          struct context_mapping *mapping)
{
    char line[512];
    if (!*at) {
        snprintf(line, sizeof line, "/proc/%d/maps", reader->process);
        *at = fopen(line, "re");
    }
    while (*at && fgets(line, sizeof line, *at)) {
        int name = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &mapping->start,
                   &mapping->end, mapping->permissions, &mapping->offset, &name) < 4)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(mapping->name, sizeof mapping->name, "%s", name > 0 ? line + name : "");
        return true;
    }
    context_end_mappings(at);
    return false;
}

void context_end_mappings(void **at)
{
    if (*at)
        fclose(*at);
    *at = NULL;
}

/* Its thread pointer, from the registers that are kept for the kernel's return to it. */
static bool read_pointer(struct context_thread *thread)
{
#if defined(__x86_64__)
    struct user_regs_struct registers;
    struct iovec wanted = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, thread->id, (void *)(uintptr_t)NT_PRSTATUS, &wanted))
        return false;
    thread->pointer = registers.fs_base;
    return true;
#else
    struct iovec wanted = {&thread->pointer, sizeof thread->pointer};
    return !ptrace(PTRACE_GETREGSET, thread->id, (void *)(uintptr_t)NT_ARM_TLS, &wanted);
#endif
}

static bool is_attached(const struct context_reader *reader, pid_t thread)
{
    for (size_t i = 0; i < reader->thread_count; i++) {
        if (reader->threads[i].id == thread)
            return true;
    }
    return false;
}

/* A thread that has gone in the meantime is none. */
static bool attach(struct context_reader *reader, pid_t id)
{
    struct context_thread *thread = &reader->threads[reader->thread_count];
    int status;
    if (ptrace(PTRACE_SEIZE, id, NULL, NULL))
        return errno == ESRCH;
    *thread = (struct context_thread){.id = id};
    reader->thread_count++;
    if (ptrace(PTRACE_INTERRUPT, id, NULL, NULL) || waitpid(id, &status, __WALL) != id ||
        !WIFSTOPPED(status))
        return false;
    /* A stop that has no event is one before a signal, which it still has to get. */
    thread->signal = status >> 16 ? 0 : WSTOPSIG(status);
    return read_pointer(thread);
}

/* Until a walk finds none that is new: those who run may have started others. */
static bool attach_all(struct context_reader *reader)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", reader->process);
    for (bool is_new = true; is_new;) {
        is_new = false;
        DIR *directory = opendir(path);
        if (!directory)
            return false;
        bool is_well = true;
        for (struct dirent *entry; is_well && (entry = readdir(directory));) {
            pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);
            if (id <= 0 || is_attached(reader, id))
                continue;
            is_new = true;
            is_well = reader->thread_count < CONTEXT_THREADS && attach(reader, id);
        }
        int reason = errno;
        closedir(directory);
        errno = reason;
        if (!is_well)
            return false;
    }
    return true;
}

struct context_reader *context_reader_open(pid_t process)
{
    struct context_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->process = process;
    if (!attach_all(reader)) {
        int reason = errno;
        context_reader_close(reader);
        errno = reason;
        return NULL;
    }
    return reader;
}

void context_reader_close(struct context_reader *reader)
{
    for (size_t i = 0; reader && i < reader->thread_count; i++)
        ptrace(PTRACE_DETACH, reader->threads[i].id, NULL,
               (void *)(uintptr_t)reader->threads[i].signal);
    free(reader);
}

size_t context_reader_threads(const struct context_reader *reader, pid_t *threads, size_t most)
{
    for (size_t i = 0; i < reader->thread_count && i < most; i++)
        threads[i] = reader->threads[i].id;
    return reader->thread_count;
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}

/* What the specification says of a record that is in use. */
static enum context_found judge(struct context_reader *reader, uint64_t address,
                                const uint8_t head[HEAD_SIZE], struct context_record *record)
{
    memcpy(record->trace_id, head, 16);
    memcpy(record->span_id, head + 16, 8);
    record->flags = head[25];
    memcpy(&record->attributes_size, head + 26, 2);
    bool is_set = !is_zero(record->span_id, 8);
    if (address % 2 != 0)
        return context_fault(reader, "the record is not aligned");
    if (head[24] > 1)
        return context_fault(reader, "valid is %u", head[24]);
    if (head[24] == 0)
        return CONTEXT_NONE;
    if (is_set == is_zero(record->trace_id, 16))
        return context_fault(reader, "one of the ids is set, and one is not");
    if (!is_set && record->flags)
        return context_fault(reader, "there are flags without ids");
    if (record->attributes_size > RECORD_MOST - HEAD_SIZE)
        return context_fault(reader, "there are %u bytes of attributes", record->attributes_size);
    return is_set ? CONTEXT_FOUND : CONTEXT_NONE;
}

enum context_found context_reader_thread(struct context_reader *reader, pid_t thread,
                                         struct context_record *record)
{
    uint64_t variable, address;
    uint8_t head[HEAD_SIZE];
    *record = (struct context_record){.flags = 0};
    const struct context_thread *found = NULL;
    for (size_t i = 0; i < reader->thread_count; i++) {
        if (reader->threads[i].id == thread)
            found = &reader->threads[i];
    }
    if (!found)
        return context_fault(reader, "there is no thread %d", thread);
    enum context_found way = context_find_variable(reader, found, &variable, record);
    if (way != CONTEXT_FOUND)
        return way;
    variable += (uint64_t)reader->misplaced;
    if (!context_read(reader, variable, &address, sizeof address))
        return context_fault(reader, "the variable at 0x%" PRIx64 " cannot be read", variable);
    if (!address)
        return CONTEXT_NONE;
    if (!context_read(reader, address, head, sizeof head))
        return context_fault(reader, "the record at 0x%" PRIx64 " cannot be read", address);
    return judge(reader, address, head, record);
}
