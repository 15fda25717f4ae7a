/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/support/context_reader_test.c - specification of support/context_reader.h: it finds what it
 * should, and refuses what breaks a rule. This program plays the part of otel-c, which it is not
 * linked with: it forks, and each child publishes something and waits to be read. */
#include "tests/support/context_reader.h"
#include "tests/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <threads.h>
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

TEST(a_record_is_found)
{
    struct context_record found;
    struct child child = child_open(change_and_point, &usual);

    assert_int_equal(context_reader_thread(child.reader, child.id, &found), CONTEXT_FOUND);

    assert_memory_equal(found.trace_id, usual.trace_id, 16);
    assert_memory_equal(found.span_id, usual.span_id, 8);
    assert_int_equal(found.flags, usual.flags);
    assert_true(found.is_by_linker);
    child_close(&child);
}

TEST(nothing_and_what_is_not_valid_is_no_span)
{
    struct record invalid = usual, unset = {.valid = 1};
    struct context_record found;
    invalid.valid = 0;
    struct child children[] = {child_open(point_at, NULL), child_open(change_and_point, &invalid),
                               child_open(change_and_point, &unset)};

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(context_reader_thread(children[i].reader, children[i].id, &found),
                         CONTEXT_NONE);
        child_close(&children[i]);
    }
}

static int other_thread(void *ready)
{
    otel_thread_ctx_v1 = &record;
    if (write(*(int *)ready, "", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static void start_another(const void *nothing)
{
    static int ends[2];
    thrd_t thread;
    char byte;
    (void)nothing;
    if (pipe(ends) || thrd_create(&thread, other_thread, &ends[1]) != thrd_success ||
        read(ends[0], &byte, 1) != 1)
        _exit(1);
}

TEST(each_thread_has_its_own)
{
    pid_t threads[8];
    struct context_record found;
    struct child child = child_open(start_another, NULL);

    assert_int_equal(context_reader_threads(child.reader, threads, 8), 2);
    pid_t other = threads[threads[0] == child.id];

    assert_int_equal(context_reader_thread(child.reader, child.id, &found), CONTEXT_NONE);
    assert_int_equal(context_reader_thread(child.reader, other, &found), CONTEXT_FOUND);
    assert_int_equal(context_reader_thread(child.reader, getpid(), &found), CONTEXT_FAULT);
    child_close(&child);
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

/* A field with a length below 128. */
static uint32_t put(uint8_t *to, uint32_t size, uint8_t field, const void *bytes, uint32_t length)
{
    to[size] = (uint8_t)(field << 3 | 2);
    to[size + 1] = (uint8_t)length;
    memcpy(to + size + 2, bytes, length);
    return size + 2 + length;
}

/* KeyValue with a text; `array`: with an array of it. */
static uint32_t put_pair(uint8_t *to, uint32_t size, uint8_t field, const char *key,
                         const char *value, bool array)
{
    uint8_t any[128], list[128], pair[128];
    uint32_t length = put(any, 0, 1, value, (uint32_t)strlen(value));
    if (array) {
        length = put(list, 0, 1, any, length);
        length = put(any, 0, 5, list, length);
    }
    uint32_t whole = put(pair, 0, 1, key, (uint32_t)strlen(key));
    whole = put(pair, whole, 2, any, length);
    return put(to, size, field, pair, whole);
}

static struct publication *good(void)
{
    static struct publication one;
    struct timespec now;
    uint8_t resource[128];
    clock_gettime(CLOCK_BOOTTIME, &now);
    memset(&one, 0, sizeof one);
    uint32_t size = put_pair(resource, 0, 1, "service.name", "checkout", false);
    size = put_pair(resource, size, 1, "host.name", "here", false);
    size = put(one.payload, 0, 1, resource, size);
    size = put_pair(one.payload, size, 2, "threadlocal.schema_version", "tlsdesc_v1_dev", false);
    size = put_pair(one.payload, size, 2, "threadlocal.attribute_key_map", "route", true);
    one.header =
        (struct header){.version = 2,
                        .size = size,
                        .published_at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec};
    memcpy(one.header.signature, "OTEL_CTX", 8);
    return &one;
}

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

static void publish_nothing(const void *about)
{
    (void)about;
}

TEST(what_a_process_says_is_read)
{
    struct context_process found;
    struct child child = child_open(publish, good());

    enum context_found way = context_reader_process(child.reader, &found);

    assert_string_equal(way == CONTEXT_FAULT ? context_reader_why(child.reader) : "", "");
    assert_int_equal(way, CONTEXT_FOUND);
    assert_string_equal(found.service_name, "checkout");
    assert_string_equal(found.schema, "tlsdesc_v1_dev");
    assert_int_equal(found.resource_count, 2);
    assert_int_equal(found.keys, 1);
    child_close(&child);
    child = child_open(publish_nothing, NULL);
    assert_int_equal(context_reader_process(child.reader, &found), CONTEXT_INVISIBLE);
    child_close(&child);
}

/* Each changes a good publication so that it is none. */
static const char *spoil(struct publication *one, unsigned how)
{
    switch (how) {
    case 0:
        one->header.signature[7] = 'x';
        return "signature";
    case 1:
        one->header.version = 1;
        return "version";
    case 2:
        one->header.published_at += UINT64_C(1) << 40;
        return "later";
    case 3:
        one->header.published_at = 0;
        return "being changed";
    case 4:
        one->header.size = 0;
        return "0 bytes";
    case 5:
        one->header.size = 65537;
        return "65537 bytes";
    case 6:
        one->header.size--;
        return "beyond the end";
    case 7:
        one->header.size =
            put_pair(one->payload, one->header.size, 2, "threadlocal.schema_version", "a", false);
        return "twice";
    case 8:
        one->header.size = put_pair(one->payload, 0, 2, "other", "a", false);
        return "no resource";
    case 9:
        one->payload[one->header.size++] = 0x18;
        return "another type";
    case 10:
        one->header.size = put(one->payload, one->header.size, 3, "", 0);
        return "does not have";
    case 11:
        one->header.size = put(one->payload, one->header.size, 1, "", 0);
        return "two resources";
    default:
        return NULL;
    }
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

TEST(what_breaks_a_rule_is_refused)
{
    for (unsigned how = 0;; how++) {
        struct publication *one = good();
        const char *why = spoil(one, how);
        if (!why)
            break;
        assert_process_refused(publish, one, why);
    }
    assert_process_refused(publish_twice, good(), "2 mappings");
}

TEST(keys_that_break_a_rule_are_refused)
{
    static const struct {
        const char *key, *value;
        bool array;
        const char *why;
    } cases[] = {{"threadlocal.attribute_key_map", "", true, "or empty"},
                 {"threadlocal.attribute_key_map", "route", false, "no array"},
                 {"threadlocal.schema_version", "", false, "or empty"},
                 {"threadlocal.schema_version", "a", true, "no text"},
                 {"other", "\xff", false, "UTF-8"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct publication *one = good();
        uint32_t size = put(one->payload, 0, 1, "", 0);
        one->header.size =
            put_pair(one->payload, size, 2, cases[i].key, cases[i].value, cases[i].array);
        assert_process_refused(publish, one, cases[i].why);
    }
}
