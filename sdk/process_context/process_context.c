/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/process_context/process_context.c - see process_context.h. */
#include "sdk/process_context/process_context.h"
#include "common/base/atomic.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/os/signal_guard.h"
#include "common/text/error_text.h"
#include "common/wire.h"

#include <errno.h>
#include <otel/exporter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Of newer kernels than the headers that we may be built with. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

/* Room for the largest payload, so that one can take the place of another; what is never
 * written takes no memory. */
enum { MAPPED = sizeof(struct oteli_process_context) + OTELI_PROCESS_CONTEXT_MAX };

/* Fields of ProcessContext, KeyValue and AnyValue. */
enum {
    CONTEXT_RESOURCE = 1,
    CONTEXT_ATTRIBUTE = 2,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    VALUE_STRING = 1,
    VALUE_ARRAY = 5
};

static struct oteli_process_context *published;
static bool connection_refused;

/* --- the payload --- */

static size_t pair_size(const char *key, size_t value_size)
{
    return oteli_bytes_field_size(PAIR_KEY, strlen(key)) +
           oteli_bytes_field_size(PAIR_VALUE, value_size);
}

/* A field ProcessContext.attributes whose value has one field of bytes. */
static uint8_t *put_pair(uint8_t *at, const char *key, uint32_t field, const char *value)
{
    const size_t value_size = oteli_bytes_field_size(field, strlen(value));
    at = oteli_put_bytes_head(at, CONTEXT_ATTRIBUTE, pair_size(key, value_size));
    at = oteli_put_bytes_field(at, PAIR_KEY, key, strlen(key));
    at = oteli_put_bytes_head(at, PAIR_VALUE, value_size);
    return oteli_put_bytes_field(at, field, value, strlen(value));
}

/* Copy what fits of a resource: whole attributes. */
static size_t cut_resource(uint8_t *to, const struct oteli_resource *resource, size_t room)
{
    const uint8_t *at = (const uint8_t *)resource->otlp;
    const uint8_t *const end = at + resource->otlp_length;
    size_t taken = 0;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        const size_t size = (size_t)(at - field.start);
        if (size > room - taken)
            continue;
        memcpy(to + taken, field.start, size);
        taken += size;
    }
    return taken;
}

/* At most OTELI_PROCESS_CONTEXT_MAX bytes. The records have no attributes, so there are no keys
 * of them. */
static size_t put_payload(uint8_t *payload, const struct oteli_resource *resource,
                          const char *schema)
{
    static const char version_key[] = "threadlocal.schema_version";
    static const char map_key[] = "threadlocal.attribute_key_map";
    uint8_t *at = put_pair(payload, version_key, VALUE_STRING, schema);
    at = put_pair(at, map_key, VALUE_ARRAY, "");
    const size_t head = OTELI_VARINT_MAX + OTELI_VARINT_MAX;
    const size_t room = OTELI_PROCESS_CONTEXT_MAX - (size_t)(at - payload) - head;
    uint8_t *const aside = at + head;
    const size_t size = cut_resource(aside, resource, room);
    at = oteli_put_bytes_head(at, CONTEXT_RESOURCE, size);
    memmove(at, aside, size);
    if (size < resource->otlp_length)
        OTELI_LOG(OTEL_LOG_WARN, "the resource is too large for readers of this process's context: "
                                 "they get a part of it");
    return (size_t)(at - payload) + size;
}

/* --- the mapping --- */

/* Readers look for either name. A file in memory has one on kernels that name no anonymous
 * memory, and can be had under system call filters that refuse files in memory without. */
int oteli_memory_file(const char *name)
{
    const unsigned sealing = MFD_ALLOW_SEALING;
    const int file = memfd_create(name, MFD_CLOEXEC | sealing | MFD_NOEXEC_SEAL);
    return file >= 0 || errno != EINVAL ? file : memfd_create(name, MFD_CLOEXEC | sealing);
}

/* A file in memory counts for RLIMIT_FSIZE, and a file that would exceed the limit raises
 * SIGXFSZ. */
static bool set_size(int file)
{
    struct oteli_signal_guard guard;
    oteli_signal_guard_begin(&guard);
    const bool is_set = ftruncate(file, MAPPED) == 0;
    oteli_signal_guard_end(&guard, is_set ? 0 : errno);
    return is_set;
}

static void *map_file(void)
{
    const int file = oteli_memory_file(OTELI_PROCESS_CONTEXT_NAME);
    void *mapping = MAP_FAILED;
    if (file >= 0 && set_size(file))
        mapping = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    struct oteli_error_text text;
    if (mapping == MAP_FAILED)
        OTELI_LOG(OTEL_LOG_DEBUG,
                  "no file in memory for this process's context (%s): anonymous memory instead, "
                  "which readers find only if this kernel names it",
                  oteli_error_text(errno, &text));
    if (file >= 0)
        close(file);
    return mapping;
}

static struct oteli_process_context *map(void)
{
    void *mapping = map_file();
    if (mapping == MAP_FAILED)
        mapping = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return NULL;
    if (madvise(mapping, MAPPED, MADV_DONTFORK) == 0)
        return mapping;
    munmap(mapping, MAPPED);
    return NULL;
}

/* Each time, also when it has the name: readers that watch for this call look again then. */
static void name_mapping(void)
{
    (void)prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, published, MAPPED, OTELI_PROCESS_CONTEXT_NAME);
}

static uint64_t now_or_later_than(uint64_t before)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    const uint64_t ns = oteli_timespec_ns(now);
    return ns > before ? ns : before + 1;
}

static void write_context(const struct oteli_resource *resource, const char *schema)
{
    const uint64_t before = published->published_at;
    oteli_store_relaxed_64(&published->published_at, 0);
    oteli_fence_full();
    uint8_t *const payload = (uint8_t *)(published + 1);
    memcpy(published->signature, OTELI_PROCESS_CONTEXT_NAME, sizeof published->signature);
    published->version = OTELI_PROCESS_CONTEXT_VERSION;
    published->payload_size = (uint32_t)put_payload(payload, resource, schema);
    published->payload = (uint64_t)(uintptr_t)payload;
    oteli_fence_full();
    oteli_store_relaxed_64(&published->published_at, now_or_later_than(before));
}

void oteli_process_context_publish(const struct oteli_resource *resource, const char *schema)
{
    const int saved_errno = errno;
    if (schema[0] != '\0' && published == NULL) {
        published = map();
        connection_refused = published == NULL;
    }
    if (schema[0] != '\0' && published != NULL) {
        write_context(resource, schema);
        name_mapping();
    }
    errno = saved_errno;
}

void oteli_process_context_take_back(void)
{
    connection_refused = false;
    if (published == NULL)
        return;
    oteli_store_relaxed_64(&published->published_at, 0);
    oteli_fence_full();
    munmap(published, MAPPED);
    published = NULL;
}

void oteli_process_context_forget(void)
{
    connection_refused = false;
    published = NULL;
}

const struct oteli_process_context *oteli_process_context_published(void)
{
    return published;
}

bool oteli_process_context_was_refused(void)
{
    return connection_refused;
}

void oteli_process_context_schema(char taken[OTELI_SCHEMA_SIZE], const char *schema)
{
    const size_t length = schema != NULL ? strnlen(schema, OTELI_SCHEMA_SIZE - 1) : 0;
    if (schema != NULL && schema[length] != '\0')
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "OTEL_C_THREAD_CONTEXT_SCHEMA is longer than %d bytes; using its first %d",
                         OTELI_SCHEMA_SIZE - 1, OTELI_SCHEMA_SIZE - 1);
    memcpy(taken, schema != NULL ? schema : "", length);
    taken[length] = '\0';
}
