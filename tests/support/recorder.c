/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/recorder.c - the contracts are in recorder.h. */
#include "tests/support/recorder.h"
#include "api/record/set_roots.h"
#include "sdk/pipeline/batch.h"
#include "sdk/view/span_view.h"
#include "tests/support/leaks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SPANS_KEPT = 32768, BYTES_KEPT = 8 * 1024 * 1024, LINES_KEPT = 256 };
enum { LIMIT = 128 };
#define BOOT_NS UINT64_C(10000000000)

struct recorder recorder;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct recorded_span spans[SPANS_KEPT];
static uint8_t bytes[BYTES_KEPT];
static size_t bytes_used;
static struct oteli_line *lines[LINES_KEPT];
static size_t line_count;
static bool is_fast;

/* What the worker does with a record: its times become nanoseconds. */
static const struct oteli_record *finish(struct oteli_record *record)
{
    if ((record->what & OTELI_RECORD_RAW) != 0)
        return oteli_raw_finish((struct oteli_raw *)(void *)record);
    oteli_record_convert(record);
    return record;
}

static void keep(struct oteli_record *ended)
{
    recorder.raw += (ended->what & OTELI_RECORD_RAW) != 0;
    const struct oteli_record *record = finish(ended);
    const uint8_t *message = oteli_record_message((struct oteli_record *)(uintptr_t)record);
    if (recorder.count < SPANS_KEPT && record->length <= BYTES_KEPT - bytes_used) {
        memcpy(bytes + bytes_used, message, record->length);
        spans[recorder.count] =
            (struct recorded_span){bytes + bytes_used,        record->length,    record->epoch,
                                   record->times_at,          record->events_at, record->tracer,
                                   oteli_record_scope(record)};
        bytes_used += record->length;
    }
    recorder.count++;
}

static void export_one(struct oteli_sdk *sdk, const void *record)
{
    (void)sdk;
    if (recorder.inside != NULL)
        recorder.inside();
    pthread_mutex_lock(&mutex);
    keep((struct oteli_record *)(uintptr_t)record);
    pthread_mutex_unlock(&mutex);
}

static uint32_t take_quota(struct oteli_sdk *sdk, uint32_t ended)
{
    (void)sdk;
    if (recorder.inside != NULL)
        recorder.inside();
    pthread_mutex_lock(&mutex);
    recorder.lots_taken++;
    recorder.last_ended = ended;
    pthread_mutex_unlock(&mutex);
    return recorder.quota;
}

static void request_drain(struct oteli_sdk *sdk)
{
    (void)sdk;
}

static void hand_over(struct oteli_sdk *sdk, struct oteli_line *line)
{
    (void)sdk;
    pthread_mutex_lock(&mutex);
    assert_true(line_count < LINES_KEPT);
    lines[line_count++] = line;
    recorder.lines_handed_over++;
    pthread_mutex_unlock(&mutex);
}

static void wake(struct oteli_sdk *sdk)
{
    (void)sdk;
    recorder.wakes++;
}

static void log_line(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    pthread_mutex_lock(&mutex);
    recorder.logs++;
    snprintf(recorder.last_log, sizeof recorder.last_log, "%s", message);
    pthread_mutex_unlock(&mutex);
}

static void start(bool synchronous)
{
    static uint64_t generation;
    generation += 2;
    recorder = (struct recorder){
        .sdk = {.generation = generation,
                .limits = {SIZE_MAX, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, false, 64},
                .synchronous = synchronous,
                .take_quota = take_quota,
                .hand_over = hand_over,
                .request_drain = request_drain,
                .wake = wake,
                .export_one = export_one},
        .quota = 64,
    };
    memset(recorder.sdk.decide, OTELI_DECIDE_SAMPLE, sizeof recorder.sdk.decide);
    bytes_used = 0;
    line_count = 0;
    oteli_sdk_install(&recorder.sdk);
    if (is_fast)
        oteli_store_relaxed_64(&oteli_fast_generation, generation);
}

void recorder_start(void)
{
    start(true);
}

void recorder_start_queued(void)
{
    start(false);
}

void recorder_stop(void)
{
    oteli_sdk_uninstall();
    for (size_t i = 0; i < line_count; i++)
        oteli_line_put(lines[i]);
    line_count = 0;
}

static void collect_from(struct oteli_line *line)
{
    const uint32_t committed = oteli_load_acquire_32(&line->committed);
    while (line->consumed < committed) {
        struct oteli_record *record = oteli_line_record(line, line->consumed);
        line->consumed += record->size;
        keep(record);
    }
}

void recorder_collect(void)
{
    for (size_t i = 0; i < line_count; i++) {
        collect_from(lines[i]);
        oteli_line_put(lines[i]);
    }
    line_count = 0;
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next) {
        if (oteli_load_acquire_64(&at->generation) == recorder.sdk.generation && at->line != NULL)
            collect_from(at->line);
    }
}

struct recorded_span recorder_span(size_t index)
{
    assert_true(index < recorder.count && index < SPANS_KEPT && spans[index].message != NULL);
    return spans[index];
}

bool recorder_find(const uint8_t *message, size_t length, uint32_t number, size_t nth,
                   struct oteli_field *field)
{
    const uint8_t *at = message;
    while (oteli_next_field(&at, message + length, field))
        if (field->number == number && nth-- == 0)
            return true;
    return false;
}

bool recorder_has_field(size_t index, uint32_t number)
{
    const struct recorded_span span = recorder_span(index);
    struct oteli_field field;
    return recorder_find(span.message, span.length, number, 0, &field);
}

struct oteli_field recorder_field(size_t index, uint32_t number)
{
    const struct recorded_span span = recorder_span(index);
    struct oteli_field field;
    assert_true(recorder_find(span.message, span.length, number, 0, &field));
    return field;
}

size_t recorder_count(size_t index, uint32_t number)
{
    const struct recorded_span span = recorder_span(index);
    struct oteli_field field;
    size_t count = 0;
    while (recorder_find(span.message, span.length, number, count, &field))
        count++;
    return count;
}

/* The value of a string or an integer attribute, as text. */
static void put_value(char *out, size_t size, const struct oteli_field *any)
{
    struct oteli_field value;
    if (recorder_find(any->bytes, any->length, 1, 0, &value))
        snprintf(out, size, "%.*s", (int)value.length, (const char *)value.bytes);
    else if (recorder_find(any->bytes, any->length, 3, 0, &value))
        snprintf(out, size, "%lld", (long long)value.value);
    else
        snprintf(out, size, "?");
}

const char *recorder_attributes(const uint8_t *message, size_t length, uint32_t number)
{
    static char out[8192];
    struct oteli_field pair;
    struct oteli_field key;
    struct oteli_field any;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; recorder_find(message, length, number, i, &pair); i++) {
        char value[64];
        assert_true(recorder_find(pair.bytes, pair.length, 1, 0, &key));
        assert_true(recorder_find(pair.bytes, pair.length, 2, 0, &any));
        put_value(value, sizeof value, &any);
        used += (size_t)snprintf(out + used, sizeof out - used, "%.*s=%s ", (int)key.length,
                                 (const char *)key.bytes, value);
        assert_true(used < sizeof out);
    }
    return out;
}

const char *recorder_span_attributes(size_t index)
{
    const struct recorded_span span = recorder_span(index);
    return recorder_attributes(span.message, span.length, RECORDER_ATTRIBUTES);
}

struct counted recorder_counts(void)
{
    return counted_of(recorder.sdk.generation);
}

int recorder_setup_without_sdk(void **state)
{
    (void)state;
    oteli_leaks_begin();
    recorder = (struct recorder){0};
    is_fast = false;
    otel_log_set_handler(log_line, NULL);
    recorder_at(0);
    assert_null(oteli_clock_start("fake"));
    return 0;
}

int recorder_setup(void **state)
{
    recorder_setup_without_sdk(state);
    recorder_start();
    return 0;
}

int recorder_setup_queued(void **state)
{
    recorder_setup_without_sdk(state);
    recorder_start_queued();
    return 0;
}

int recorder_setup_fast(void **state)
{
    recorder_setup_without_sdk(state);
    is_fast = true;
    recorder_start();
    return 0;
}

int recorder_setup_queued_fast(void **state)
{
    recorder_setup_without_sdk(state);
    is_fast = true;
    recorder_start_queued();
    return 0;
}

void recorder_at(uint64_t ns)
{
    oteli_fake_clock.ticks = RECORDER_TICKS + ns;
    oteli_fake_clock.monotonic_ns = BOOT_NS + ns;
    oteli_fake_clock.wall_ns = RECORDER_WALL_NS + ns;
}

int recorder_teardown(void **state)
{
    (void)state;
    oteli_leaks_fail_at(0);
    recorder_stop();
    oteli_api_reset();
    otel_log_set_handler(NULL, NULL);
    oteli_leaks_check();
    return 0;
}

void recorder_on_thread(void *(*main)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, main, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

void recorder_in_child(int (*main)(const void *), const void *argument)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(main(argument));
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}
