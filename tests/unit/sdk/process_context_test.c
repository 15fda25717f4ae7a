/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/process_context_test.c - specification of what a process says of itself to readers
 * outside (sdk/process_context/process_context.h), and of otel_thread_context_selftest. */
#include "common/base/atomic.h"
#include "common/wire.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/published_settings.h"
#include "sdk/process_context/process_context.h"
#include "tests/support/fake_exporter.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"
#include <otel/thread_context.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_exporter exporter, childs;

static otel_status renew(const void *state, otel_exporter *renewed)
{
    (void)state;
    *renewed = fake_exporter(&childs);
    return OTEL_OK;
}

static otel_sdk_options options;

static void start(void)
{
    exporter = (struct fake_exporter){.name = "fake"};
    otel_exporter exporters[] = {fake_exporter(&exporter)};
    exporters[0].renew = renew;
    options.size = sizeof options;
    options.exporters = exporters;
    options.exporter_count = 1;
    options.service_name = "shop";
    options.log_level = "none";
    assert_int_equal(otel_start_with(&options), OTEL_OK);
    options = (otel_sdk_options){0};
}

static void stop(void)
{
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
}

/* Where the kernel lists a mapping with this in its name; 0: nowhere. */
static uint64_t mapping_of(const char *name)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uint64_t start = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, name) != NULL)
            assert_int_equal(sscanf(line, "%" SCNx64, &start), 1);
    fclose(maps);
    return start;
}

static const struct oteli_process_context *context(void)
{
    return oteli_process_context_published();
}

/* The nth field `number` of a message. */
static struct oteli_field field_of(const uint8_t *at, size_t size, uint32_t number, size_t nth)
{
    const uint8_t *const end = at + size;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field))
        if (field.number == number && nth-- == 0)
            return field;
    fail_msg("no field %u", number);
    return (struct oteli_field){0};
}

static struct oteli_field of_payload(uint32_t number, size_t nth)
{
    return field_of((const uint8_t *)(uintptr_t)context()->payload, context()->payload_size, number,
                    nth);
}

static void assert_text(struct oteli_field field, const char *text)
{
    assert_int_equal(field.length, strlen(text));
    assert_memory_equal(field.bytes, text, field.length);
}

/* AnyValue.field of the attribute with this key, among the fields `number`. */
static struct oteli_field value_in(struct oteli_field message, uint32_t number, const char *key,
                                   uint32_t kind)
{
    for (size_t i = 0;; i++) {
        const struct oteli_field pair = field_of(message.bytes, message.length, number, i);
        const struct oteli_field name = field_of(pair.bytes, pair.length, 1, 0);
        if (name.length != strlen(key) || memcmp(name.bytes, key, name.length) != 0)
            continue;
        const struct oteli_field value = field_of(pair.bytes, pair.length, 2, 0);
        return field_of(value.bytes, value.length, kind, 0);
    }
}

static struct oteli_field payload(void)
{
    return (struct oteli_field){.bytes = (const uint8_t *)(uintptr_t)context()->payload,
                                .length = context()->payload_size};
}

TEST(of_a_large_resource_they_get_the_attributes_that_fit)
{
    enum { LARGE = 40000 };
    char *const text = malloc(LARGE + 1);
    assert_non_null(text);
    memset(text, 'x', LARGE);
    text[LARGE] = '\0';
    const otel_attribute resource[] = {otel_attribute_of("a", otel_value_string(text)),
                                       otel_attribute_of("b", otel_value_string(text)),
                                       otel_attribute_of("c", otel_value_string("small"))};
    options.resource = resource;
    options.resource_count = 3;
    start();
    assert_true(context()->payload_size <= 65536);
    assert_int_equal(value_in(of_payload(1, 0), 1, "a", 1).length, LARGE);
    assert_text(value_in(of_payload(1, 0), 1, "c", 1), "small");
    assert_text(value_in(of_payload(1, 0), 1, "service.name", 1), "shop");
    stop();
    free(text);
}

/* --- what the system has --- */

static unsigned memory_files_refused; /* so many more */
static int refused_with;
static unsigned memory_files_opened;
static unsigned times_named;
static bool is_naming_refused;

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __real_prctl(int option, ...);
int __wrap_prctl(int option, unsigned long two, unsigned long three, unsigned long four,
                 unsigned long five);

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (strcmp(name, "OTEL_CTX") != 0) /* what is published for otel-doctor */
        return __real_memfd_create(name, flags);
    memory_files_opened++;
    if (memory_files_refused == 0)
        return __real_memfd_create(name, flags);
    memory_files_refused--;
    errno = refused_with;
    return -1;
}

int __wrap_prctl(int option, unsigned long two, unsigned long three, unsigned long four,
                 unsigned long five)
{
    const char *name = (const char *)five; /* NOLINT: so the call is */
    if (option == 0x53564d41 && two == 0 && three == (uintptr_t)context() && four >= 32 &&
        strcmp(name, "OTEL_CTX") == 0)
        times_named++;
    return is_naming_refused ? -1 : __real_prctl(option, two, three, four, five);
}

TEST(another_payload_takes_the_place_of_the_first_at_a_later_time_and_names_the_mapping)
{
    const uint64_t far = UINT64_MAX / 2; /* the clock has gone back since */
    static char service[] = {10, 5, 10, 1, 'k', 18, 0};
    const struct oteli_resource resource = {.otlp = service, .otlp_length = sizeof service};
    times_named = 0;
    start();
    assert_int_equal(times_named, 1);
    const struct oteli_process_context *const first = context();
    ((struct oteli_process_context *)(uintptr_t)first)->published_at = far;

    oteli_process_context_publish(&resource, "another");

    assert_ptr_equal(context(), first);
    assert_int_equal(first->published_at, far + 1);
    assert_int_equal(times_named, 2);
    assert_text(value_in(payload(), 2, "threadlocal.schema_version", 1), "another");
    assert_int_equal(of_payload(1, 0).length, sizeof service);
    stop();
}

TEST(a_kernel_that_knows_no_seal_against_execution_has_a_file_without)
{
    memory_files_opened = 0;
    memory_files_refused = 1;
    refused_with = EINVAL;
    start();
    assert_int_equal(memory_files_opened, 2);
    assert_int_equal(mapping_of("OTEL_CTX"), (uintptr_t)context());
    assert_true(mapping_of(OTELI_PUBLISHED_PREFIX "00:otel-c\t\t" OTEL_VERSION) != 0);
    stop();
}

TEST(without_files_in_memory_there_is_anonymous_memory)
{
    memory_files_opened = 0;
    memory_files_refused = 2;
    refused_with = ENOSYS; /* or EPERM: system call filters */
    is_naming_refused = true;
    start();
    is_naming_refused = false;
    assert_int_equal(memory_files_opened, 1);
    assert_non_null(context());
    assert_memory_equal(context(), "OTEL_CTX", 8);
    assert_int_equal(otel_thread_context_selftest(NULL, 0), OTEL_ERROR_SYSTEM);
    memory_files_refused = 0;
    stop();
}

/* --- changes --- */

enum { ALIKE = 4000, CHANGES = 20000 };

struct reader {
    uint32_t is_over;
    uint64_t whole; /* copies that were taken */
    uint64_t halves;
};

/* As readers do: a copy counts if the time was there before, and is the same after it. Its bytes
 * are alike, from the resource's first one on. */
__attribute__((no_sanitize("thread"))) static void *read_along(void *argument)
{
    static char copy[ALIKE - 3];
    struct reader *reader = argument;
    const struct oteli_process_context *header = context();
    while (oteli_load_relaxed_32(&reader->is_over) == 0) {
        const uint64_t before = oteli_load_acquire_64(&header->published_at);
        const volatile char *end =
            (const volatile char *)(uintptr_t)header->payload + header->payload_size;
        for (size_t i = 0; before != 0 && i < sizeof copy; i++)
            copy[i] = end[-(ptrdiff_t)i - 1];
        oteli_fence_full();
        if (before == 0 || oteli_load_relaxed_64(&header->published_at) != before)
            continue;
        oteli_store_relaxed_64(&reader->whole, reader->whole + 1);
        reader->halves += copy[0] != copy[sizeof copy - 1] || copy[0] != copy[ALIKE / 2];
    }
    return NULL;
}

TEST(whoever_reads_along_never_takes_half_of_a_change)
{
    struct reader reader = {0};
    pthread_t thread;
    static char alike[2][ALIKE];
    start();
    for (unsigned i = 0; i < 2; i++)
        memset(alike[i], 'a' + (int)i, ALIKE);
    for (unsigned i = 0; i < 2; i++) { /* one attribute each, of bytes that are alike */
        alike[i][0] = 10;
        alike[i][1] = (char)(0x80 | ((ALIKE - 3) & 0x7f));
        alike[i][2] = (char)((ALIKE - 3) >> 7);
    }
    const struct oteli_resource resources[2] = {{.otlp = alike[0], .otlp_length = ALIKE},
                                                {.otlp = alike[1], .otlp_length = ALIKE}};
    oteli_process_context_publish(&resources[0], "s");
    assert_int_equal(pthread_create(&thread, NULL, read_along, &reader), 0);
    for (unsigned i = 0; i < CHANGES || oteli_load_relaxed_64(&reader.whole) < 100; i++)
        oteli_process_context_publish(&resources[i % 2], "s");
    oteli_store_relaxed_32(&reader.is_over, 1);
    pthread_join(thread, NULL);
    assert_int_equal(reader.halves, 0);
    stop();
}

TEST(the_selftest_looks_at_what_is_published)
{
    char why[200] = "?";
    assert_int_equal(otel_thread_context_selftest(why, sizeof why), OTEL_OK);
    assert_string_equal(why, "");
    start();
    assert_int_equal(otel_thread_context_selftest(why, sizeof why), OTEL_OK);
    struct oteli_process_context *const writable =
        (struct oteli_process_context *)(uintptr_t)context();
    writable->version = 1;
    assert_int_equal(otel_thread_context_selftest(why, sizeof why), OTEL_ERROR_SYSTEM);
    assert_true(strlen(why) > 0);
    assert_int_equal(otel_thread_context_selftest(why, 4), OTEL_ERROR_SYSTEM);
    assert_int_equal(strlen(why), 3);
    assert_int_equal(otel_thread_context_selftest(NULL, 0), OTEL_ERROR_SYSTEM);
    writable->version = 2;
    assert_int_equal(otel_thread_context_selftest(NULL, 0), OTEL_OK);
    stop();
}
