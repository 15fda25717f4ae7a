/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/support/context_reader_test.c - specification of support/context_reader.h: it refuses
 * what breaks a rule. That it finds what it should is seen by integration.thread_context. This
 * program plays the part of otel-c, which it is not linked with: it forks, and each child publishes
 * something and waits to be read. */
#include "tests/support/context_reader.h"
#include "tests/support/unit.h"
#include "tests/support/wire_text.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t flags;
    uint16_t size;
};
static const struct record usual = {"0123456789abcdef", "ghijklmn", 1, 3, 0};

extern __thread const void *otel_thread_ctx_v1;
__thread const void *otel_thread_ctx_v1;
static struct record record;

/* A child, once it has done `publish` and stands still. */
struct child {
    pid_t id;
    struct context_reader *reader;
};

_Noreturn static void publish_and_wait(void (*publish)(const void *about), const void *about,
                                       int ready)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    record = usual;
    publish(about);
    if (write(ready, "", 1) == 1)
        for (;;)
            pause();
    _exit(1);
}

static struct child child_open(void (*publish)(const void *about), const void *about)
{
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t id = fork();
    if (id == 0)
        publish_and_wait(publish, about, ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    struct child child = {id, context_reader_open(id)};
    assert_non_null(child.reader);
    return child;
}

static void child_close(struct child *child)
{
    context_reader_close(child->reader);
    kill(child->id, SIGKILL);
    assert_int_equal(waitpid(child->id, NULL, 0), child->id);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void point_at(const void *at)
{
    otel_thread_ctx_v1 = at;
}

static void change_and_point(const void *changed)
{
    memcpy(&record, changed, sizeof record);
    otel_thread_ctx_v1 = &record;
}

TEST(a_wrong_place_is_noticed)
{
    static const int64_t wrong[] = {-16, -8, -1, 1, 8, 4096, INT64_C(1) << 46};
    struct context_record found;
    struct child child = child_open(change_and_point, &usual);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        context_reader_misplace(child.reader, wrong[i]);
        bool is_found = context_reader_thread(child.reader, child.id, &found) == CONTEXT_FOUND;
        assert_false(is_found && memcmp(found.span_id, usual.span_id, 8) == 0);
    }
    child_close(&child);
}

static void assert_refused(const struct child *child, const char *why)
{
    struct context_record found;
    assert_int_equal(context_reader_thread(child->reader, child->id, &found), CONTEXT_FAULT);
    assert_non_null(strstr(context_reader_why(child->reader), why));
}

TEST(records_that_break_a_rule_are_refused)
{
    static char odd[64] __attribute__((aligned(8)));
    struct {
        struct record record;
        const char *why;
    } cases[] = {{usual, "valid is 2"},
                 {usual, "one of the ids"},
                 {usual, "one of the ids"},
                 {{.valid = 1, .flags = 1}, "without ids"},
                 {usual, "613 bytes of attributes"}};
    cases[0].record.valid = 2;
    memset(cases[1].record.trace_id, 0, 16);
    memset(cases[2].record.span_id, 0, 8);
    cases[4].record.size = 613;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child = child_open(change_and_point, &cases[i].record);
        assert_refused(&child, cases[i].why);
        child_close(&child);
    }
    memcpy(odd + 1, &usual, sizeof usual);
    struct child child = child_open(point_at, odd + 1);
    assert_refused(&child, "not aligned");
    child_close(&child);
    child = child_open(point_at, (const void *)(uintptr_t)64);
    assert_refused(&child, "cannot be read");
    child_close(&child);
}

/* ---- the process -------------------------------------------------------------------------- */

struct header {
    char signature[8];
    uint32_t version;
    uint32_t size;
    uint64_t published_at;
    uint64_t payload;
};

struct publication {
    struct header header;
    uint8_t payload[70000];
};

static struct publication *with_payload(const char *text)
{
    static struct publication one;
    struct timespec now;
    const otel_slice payload = wire_text("%s", text);
    clock_gettime(CLOCK_BOOTTIME, &now);
    memset(&one, 0, sizeof one);
    memcpy(one.payload, payload.data, payload.length);
    one.header =
        (struct header){.version = 2,
                        .size = (uint32_t)payload.length,
                        .published_at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
    memcpy(one.header.signature, "OTEL_CTX", 8);
    return &one;
}

#define PAIR(key, value) "2{1'" key "' 2{" value "}} "
#define SCHEMA "threadlocal.schema_version"
#define KEYS "threadlocal.attribute_key_map"
#define GOOD                                                                 \
    "1{1{1'service.name' 2{1'checkout'}} 1{1'host.name' 2{1'here'}}} " PAIR( \
        SCHEMA, "1'tlsdesc_v1_dev'") PAIR(KEYS, "5{1{1'route'}}")

static void publish(const void *about)
{
    const struct publication *publication = about;
    struct header *header = MAP_FAILED;
    int descriptor = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor >= 0 && !ftruncate(descriptor, sizeof *header))
        header = mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    if (header == MAP_FAILED)
        _exit(1);
    *header = publication->header;
    header->payload = (uintptr_t)publication->payload;
}

static void publish_twice(const void *about)
{
    publish(about);
    publish(about);
}

static void assert_process_refused(void (*how)(const void *), struct publication *one,
                                   const char *why)
{
    struct context_process found;
    struct child child = child_open(how, one);
    assert_int_equal(context_reader_process(child.reader, &found), CONTEXT_FAULT);
    if (!strstr(context_reader_why(child.reader), why))
        fail_msg("\"%s\" does not say: %s", context_reader_why(child.reader), why);
    child_close(&child);
}

#define HEADER(field, value) \
    offsetof(struct header, field), sizeof(((struct header *)NULL)->field), value

TEST(headers_that_break_a_rule_are_refused)
{
    static const struct {
        size_t at, size;
        uint64_t value;
        const char *why;
    } cases[] = {
        {7, 1, 'x', "signature"},
        {HEADER(version, 1), "version"},
        {HEADER(published_at, UINT64_MAX), "later"},
        {HEADER(published_at, 0), "being changed"},
        {HEADER(size, 0), "0 bytes"},
        {HEADER(size, 65537), "65537 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct publication *one = with_payload(GOOD);
        memcpy((char *)&one->header + cases[i].at, &cases[i].value, cases[i].size);
        assert_process_refused(publish, one, cases[i].why);
    }
    assert_process_refused(publish_twice, with_payload(GOOD), "2 mappings");
}

TEST(payloads_that_break_a_rule_are_refused)
{
    static const char *const cases[][2] = {
        {GOOD PAIR(SCHEMA, "1'v'"), "twice"},        {GOOD "3=1", "another type"},
        {GOOD "3'12345'", "does not have"},          {GOOD "1{}", "two resources"},
        {"1{}" PAIR(KEYS, "5{1{1''}}"), "or empty"}, {"1{}" PAIR(KEYS, "1'route'"), "no array"},
        {"1{}" PAIR(SCHEMA, "1''"), "or empty"},     {"1{}" PAIR(SCHEMA, "5{1{1'a'}}"), "no text"},
        {"1{}" PAIR("other", "1'\xff'"), "UTF-8"},   {PAIR("other", "1'a'"), "no resource"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_process_refused(publish, with_payload(cases[i][0]), cases[i][1]);
    struct publication *cut = with_payload(GOOD);
    cut->header.size--;
    assert_process_refused(publish, cut, "beyond the end");
}
