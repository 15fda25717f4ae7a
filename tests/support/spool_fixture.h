/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/spool_fixture.h - one spool in a directory of its own for each test: opened by
 * `begin`, closed by `end`, filled and emptied by the rest. The log is silent, nothing that was
 * allocated stays. For one source a program. */
#ifndef OTELI_TESTS_SPOOL_FIXTURE_H
#define OTELI_TESTS_SPOOL_FIXTURE_H

#include "exporters/otlp/spool/disk_spool.h"
#include "tests/support/leaks.h"
#include "tests/support/spool_files.h"

#include <otel/sdk.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define NS_PER_S UINT64_C(1000000000)

static struct spool_files files;
static struct oteli_spool *spool;
static otel_spool_stats before;

static void say_nothing(void *state, otel_log_level level, const char *line)
{
    (void)state;
    (void)level;
    (void)line;
}

static struct oteli_spool *open_one(void)
{
    return oteli_spool_open(files.path, SPOOL_ENDPOINT, OTEL_OTLP_HTTP_PROTOBUF, 0, 0);
}

static int begin(void **state)
{
    (void)state;
    otel_log_set_handler(say_nothing, NULL);
    spool_files_begin(&files);
    oteli_leaks_begin();
    spool = open_one();
    before = spool_files_stats();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)spool_files_stats();
    oteli_spool_close(spool);
    oteli_leaks_check();
    spool_files_end(&files);
    return 0;
}

static void open_again(uint64_t max_bytes, int64_t max_age_ms)
{
    oteli_spool_close(spool);
    spool = oteli_spool_open(files.path, SPOOL_ENDPOINT, OTEL_OTLP_HTTP_PROTOBUF, max_bytes,
                             max_age_ms);
    before = spool_files_stats();
}

static bool put(const char *request, uint32_t spans)
{
    return oteli_spool_put(spool, request, strlen(request), spans);
}

/* The oldest request, as a text; "": there is none. It is settled with `how`. */
static const char *take_from(struct oteli_spool *from, enum oteli_request_call_end how)
{
    static char text[4096];
    struct oteli_spool_item item;
    text[0] = '\0';
    if (!oteli_spool_first(from, &item))
        return text;
    assert_true(item.length < sizeof text);
    memcpy(text, item.bytes, item.length);
    text[item.length] = '\0';
    oteli_spool_settle(from, how, 0);
    (void)spool_files_stats();
    return text;
}

static const char *take(void)
{
    return take_from(spool, OTELI_CALL_DELIVERED);
}

static uint64_t seconds_ago(uint64_t seconds)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec - seconds) * NS_PER_S;
}

/* Until something is put, or looked for, there is no directory. */
static void make_directory(void)
{
    assert_true(put("", 0));
    assert_string_equal(take(), "");
    before = spool_files_stats();
}

#define COUNTED(what) (spool_files_stats().what - before.what)

#endif
