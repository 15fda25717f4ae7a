/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/otlp_fixture.c - the contracts are in otlp_fixture.h. Test thread. */
#include "tests/support/otlp_fixture.h"

#include "common/clock/clock.h"
#include "common/log.h"
#include "tests/support/leaks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { POLLS_MAX = 10000, FAST_POLLS_MAX = 100000, POLL_MS = 100 };

static struct fixture *listening; /* to what is logged; NULL: nobody */

static void append_line(struct fixture *fixture, const char *format, va_list arguments)
{
    size_t length = strlen(fixture->log);
    /* clang-tidy 14 does not see the caller's va_start. */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    vsnprintf(fixture->log + length, sizeof fixture->log - length, format, arguments);
    length = strlen(fixture->log);
    snprintf(fixture->log + length, sizeof fixture->log - length, "\n");
}

/* Instead of common/log.c, whose cap on lines of one kind goes by the real clock; of the level
 * debug only what is tried again. */
void oteli_log_write(struct oteli_log_site *site, otel_log_level level, uint64_t lost,
                     const char *format, ...)
{
    (void)site;
    (void)lost;
    if (listening != NULL && (level != OTEL_LOG_DEBUG || strstr(format, "; again ") != NULL)) {
        va_list arguments;
        va_start(arguments, format);
        append_line(listening, format, arguments);
        va_end(arguments);
    }
}

void oteli_log_share(void)
{
}

void fixture_advance_ms(uint64_t ms)
{
    oteli_fake_clock.monotonic_ns += ms * UINT64_C(1000000);
}

void fixture_init(struct fixture *fixture, const struct http_sink_answer *script, size_t count,
                  const otel_otlp_options *options)
{
    static const otel_scope_view scope = {.otlp = {"\x0a\x04shop", 6}};
    otel_otlp_options chosen = {.size = sizeof chosen};
    if (options != NULL)
        chosen = *options;
    oteli_clock.source = OTELI_CLOCK_FAKE;
    *fixture = (struct fixture){0};
    listening = fixture;
    oteli_leaks_begin();
    fixture->sink = http_sink_start(script, count);
    if (chosen.endpoint == NULL)
        chosen.endpoint = http_sink_url(fixture->sink);
    assert_int_equal(otel_otlp_exporter_new(&chosen, &fixture->exporter), OTEL_OK);
    batch_double_add(&fixture->batch, &scope, "\x2a\x03one", 5);
    batch_double_add(&fixture->batch, &scope, "\x2a\x03two", 5);
    batch_double_add(&fixture->batch, &scope, "\x2a\x05three", 7);
    fixture->batch.resource = (otel_slice){"\x10\x01", 2};
}

void fixture_fini(struct fixture *fixture)
{
    fixture->exporter.free(fixture->exporter.state);
    http_sink_stop(fixture->sink);
    batch_double_fini(&fixture->batch);
    oteli_leaks_check();
    listening = NULL;
}

int fixture_end(void **state)
{
    (void)state;
    if (listening != NULL)
        fixture_fini(listening);
    return 0;
}

bool fixture_export(struct fixture *fixture)
{
    fixture->call = export_double_of(&fixture->batch, UINT64_MAX);
    return fixture->exporter.export_batch(fixture->exporter.state, &fixture->call.export) ==
           OTEL_EXPORT_DONE;
}

static bool poll_once(struct fixture *fixture, int timeout_ms)
{
    return fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, timeout_ms,
                                  false) == OTEL_EXPORT_DONE;
}

bool fixture_step(struct fixture *fixture)
{
    return poll_once(fixture, 0);
}

void fixture_finish(struct fixture *fixture)
{
    for (size_t i = 0; i < POLLS_MAX; i++) {
        if (poll_once(fixture, POLL_MS))
            return;
    }
    fail_msg("the export does not come to an end; log:\n%s", fixture->log);
}

void fixture_finish_fast(struct fixture *fixture)
{
    for (size_t i = 0; i < FAST_POLLS_MAX; i++) {
        http_sink_settle(fixture->sink); /* what is late is not for want of time */
        if (poll_once(fixture, 1))
            return;
        fixture_advance_ms(50);
    }
    fail_msg("the export does not come to an end; log:\n%s", fixture->log);
}

void fixture_wait_for_backoff(struct fixture *fixture)
{
    const size_t length = strlen(fixture->log);
    for (size_t i = 0; i < POLLS_MAX; i++) {
        assert_false(poll_once(fixture, POLL_MS));
        if (strstr(fixture->log + length, "again in") != NULL)
            return;
    }
    fail_msg("the exporter does not back off; log:\n%s", fixture->log);
}

void fixture_deliver(struct fixture *fixture)
{
    if (!fixture_export(fixture))
        fixture_finish(fixture);
}

void fixture_deliver_fast(struct fixture *fixture)
{
    assert_false(fixture_export(fixture));
    fixture_finish_fast(fixture);
}

void fixture_send(struct fixture *fixture, size_t requests)
{
    assert_false(fixture_export(fixture));
    while (http_sink_requests(fixture->sink) < requests)
        assert_false(fixture_step(fixture));
}
