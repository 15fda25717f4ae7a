/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/poll_test.c - specification of sdk/poll.c: an SDK without a thread. The tick is far
 * away unless a test says otherwise. Calls of epoll_wait come here first (--wrap), so that a
 * loop that does not wait is seen. */
#include "common/clock.h"
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <otel/otel.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

enum { FOREVER_MS = INT32_MAX, PATIENCE_MS = 60000, NS_PER_MS = 1000000, MOST_FDS = 64 };

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);
int __real_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms);

static uint32_t looks; /* calls of epoll_wait; atomic */

int __wrap_epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    oteli_add_full_32(&looks, 1);
    return __real_epoll_wait(fd, events, count, timeout_ms);
}

static struct fake_exporter fake;
static bool was_open[MOST_FDS]; /* before the test */

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int begin(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    looks = 0;
    for (int fd = 0; fd < MOST_FDS; fd++)
        was_open[fd] = is_open(fd);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    assert_int_equal(fake.overlaps, 0);
    assert_int_equal(fake.unprepared, 0);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    for (int fd = 0; fd < MOST_FDS; fd++)
        assert_int_equal(was_open[fd], is_open(fd));
    return 0;
}

static otel_status start_with_delay(int64_t delay_ms)
{
    const otel_exporter exporter = fake_exporter(&fake);
    return otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                            .clock = "monotonic", .log_level = "none",
                                            .threadless = true, .bsp_max_export_batch_size = 10,
                                            .bsp_schedule_delay = delay_ms));
}

static void start(void)
{
    assert_int_equal(start_with_delay(FOREVER_MS), OTEL_OK);
}

static void spans(const char *name, size_t count)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    for (size_t i = 0; i < count; i++)
        otel_span_end(otel_span_enter(tracer, name, NULL));
}

static bool becomes_readable(int fd, int timeout_ms)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return poll(&waited, 1, timeout_ms) == 1 && (waited.revents & POLLIN) != 0;
}

static bool is_readable(void)
{
    return becomes_readable(otel_poll_fd(), 0);
}

static void poll_once(void)
{
    assert_int_equal(otel_poll(0), OTEL_OK);
}

/* ---- who can be polled ------------------------------------------------------------------------ */

AROUND_EACH(begin, end);

TEST(without_an_sdk_there_is_nothing_to_poll)
{
    assert_int_equal(otel_poll(FOREVER_MS), OTEL_ERROR_NOT_STARTED);
    assert_int_equal(otel_poll_fd(), -1);
    assert_int_equal(otel_poll_timeout(), -1);
}

TEST(an_sdk_with_a_thread_is_not_polled)
{
    const otel_exporter exporter = fake_exporter(&fake);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .bsp_schedule_delay = FOREVER_MS)),
                     OTEL_OK);

    assert_int_equal(otel_poll(FOREVER_MS), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_poll_fd(), -1);
    assert_int_equal(otel_poll_timeout(), -1);
}

/* Otherwise a program's loop of otel_poll(1000) would be one without a pause. */
static void assert_that_it_waits(void)
{
    const uint64_t before_ns = oteli_monotonic_ns();
    assert_int_equal(otel_poll(3), OTEL_OK);
    assert_true(oteli_monotonic_ns() >= before_ns + 3 * NS_PER_MS);
    assert_true(looks <= 3);
}

/* spec: P18 */
TEST(polling_takes_the_time_it_is_given)
{
    start();

    assert_that_it_waits();
}

TEST(also_where_spans_are_exported_when_they_end)
{
    const otel_exporter exporter = fake_exporter(&fake);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .threadless = true, .simple = true)),
                     OTEL_OK);

    assert_that_it_waits();
    assert_int_equal(otel_poll_fd(), -1);
    assert_int_equal(otel_poll_timeout(), -1);
}

TEST(also_without_an_exporter)
{
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.threadless = true)), OTEL_OK);

    assert_that_it_waits();
    assert_true(otel_poll_fd() >= 0); /* somebody has to take spans away, as with an exporter */
}

TEST(also_when_it_is_disabled)
{
    struct oteli_config config;
    assert_int_equal(oteli_config_load(&config, NULL, false), OTEL_OK);
    config.sdk_disabled = true;
    const struct oteli_engine_options options = {.config = &config, .threadless = true};
    assert_int_equal(oteli_start(&options), OTEL_OK);

    assert_that_it_waits();
    assert_int_equal(otel_poll_fd(), -1);
    oteli_config_fini(&config);
}

static void do_nothing(int signal)
{
    (void)signal;
}

TEST(a_signal_does_not_shorten_it)
{
    const struct sigaction quiet = {.sa_handler = do_nothing};
    const struct itimerval often = {.it_interval.tv_usec = 200, .it_value.tv_usec = 200};
    struct sigaction before;
    start();
    sigaction(SIGALRM, &quiet, &before);
    setitimer(ITIMER_REAL, &often, NULL);

    const uint64_t before_ns = oteli_monotonic_ns();
    assert_int_equal(otel_poll(5), OTEL_OK);
    const uint64_t after_ns = oteli_monotonic_ns();

    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    sigaction(SIGALRM, &before, NULL);
    assert_true(after_ns >= before_ns + 5 * NS_PER_MS);
}

TEST(errno_stays)
{
    start();
    spans("a", 3);

    errno = EXFULL;
    poll_once();
    (void)!otel_flush(FOREVER_MS);

    assert_int_equal(errno, EXFULL);
}

/* ---- the descriptor ---------------------------------------------------------------------------- */

TEST(an_idle_sdk_needs_nobody)
{
    start();
    poll_once();

    assert_true(otel_poll_fd() >= 0);
    assert_false(is_readable());
    assert_int_equal(otel_poll_timeout(), -1);
}

TEST(the_first_span_after_a_pause_wants_to_be_seen)
{
    start();
    poll_once();

    spans("a", 1);
    assert_true(is_readable());
    poll_once();

    assert_false(is_readable());
    assert_int_equal(fake.batches, 0);
    assert_true(otel_poll_timeout() > FOREVER_MS / 2); /* the tick */
    spans("a", 1);
    assert_false(is_readable());
}

TEST(a_whole_batch_wants_to_be_exported)
{
    start();
    spans("a", 1);
    poll_once();

    spans("a", 130); /* a thread tells of its spans when it has used up a lot */
    assert_true(is_readable());
    while (is_readable())
        poll_once();

    assert_true(fake.batches >= 1);
    assert_int_equal(fake.sizes[0], 10);
    assert_int_equal(fake.spans, 10 * fake.batches);
}

TEST(the_tick_comes_through_the_descriptor)
{
    assert_int_equal(start_with_delay(1), OTEL_OK);
    spans("a", 3);

    while (fake.batches == 0) {
        assert_true(becomes_readable(otel_poll_fd(), PATIENCE_MS));
        poll_once();
    }

    assert_string_equal(fake.text, "a a a|");
}

TEST(a_program_that_only_has_timers_exports_too)
{
    assert_int_equal(start_with_delay(1), OTEL_OK);
    spans("a", 3);
    poll_once();

    while (fake.batches == 0) {
        assert_in_range(otel_poll_timeout(), 0, 1);
        assert_int_equal(poll(NULL, 0, (int)otel_poll_timeout()), 0);
        poll_once();
    }

    assert_string_equal(fake.text, "a a a|");
}

TEST(an_idle_sdk_is_done_with_its_ticks)
{
    assert_int_equal(start_with_delay(1), OTEL_OK);
    spans("a", 3);
    poll_once();

    while (otel_poll_timeout() >= 0) {
        assert_true(becomes_readable(otel_poll_fd(), PATIENCE_MS));
        poll_once();
    }

    assert_int_equal(fake.spans, 3);
    assert_false(is_readable());
}

/* The loop was waiting when somebody else flushed: what it had been told of the time is old. */
TEST(what_a_flush_has_left_to_do_wakes_the_loop)
{
    assert_int_equal(start_with_delay(1), OTEL_OK);
    poll_once();
    const int fd = otel_poll_fd();
    assert_int_equal(otel_poll_timeout(), -1);

    spans("a", 1);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    spans("b", 1);

    while (fake.batches < 2) {
        assert_true(becomes_readable(fd, PATIENCE_MS));
        poll_once();
    }
    assert_string_equal(fake.text, "a|b|");
}

TEST(after_a_shutdown_the_descriptor_says_nothing_any_more)
{
    start();
    spans("a", 3);
    poll_once();
    const int fd = otel_poll_fd();
    struct oteli_engine *const engine = oteli_lifecycle_engine();

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    oteli_bell_ring(&engine->bell);

    assert_false(becomes_readable(fd, 0));
    assert_int_equal(otel_poll_fd(), -1);
    assert_int_equal(otel_poll_timeout(), -1);
    assert_int_equal(otel_poll(0), OTEL_ERROR_NOT_STARTED);
}

/* ---- exporters that have to be waited for ------------------------------------------------------- */

TEST(an_exporter_is_never_waited_for_by_who_has_no_time)
{
    fake.pending = UINT64_MAX;
    start();
    spans("a", 100);

    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    for (unsigned i = 0; i < 10; i++)
        poll_once();
    assert_int_equal(otel_flush(1), OTEL_ERROR_TIMEOUT);

    assert_int_equal(fake.batches, 1);
    assert_int_equal(fake.prepares, 1);
    assert_int_equal(fake.waits, 0);
    fake.polls_left = 1;
    fake.pending = 0;
}

TEST(an_exporter_without_a_descriptor_is_looked_at_now_and_then)
{
    fake.pending = 3;
    start();
    spans("a", 3);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    assert_in_range(otel_poll_timeout(), 0, 5);

    while (fake.polls < 3) {
        assert_true(becomes_readable(otel_poll_fd(), PATIENCE_MS));
        poll_once();
    }

    assert_int_equal(otel_flush(0), OTEL_OK);
    assert_string_equal(fake.text, "a a a|");
}

TEST(an_exporter_with_a_descriptor_is_waited_for_through_ours)
{
    fake.pending = 2;
    fake.has_descriptor = true;
    fake.descriptor_timeout_ms = -1;
    fake.descriptor_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    start();
    spans("a", 3);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    assert_false(is_readable());
    assert_true(otel_poll_timeout() > 1000);

    eventfd_write(fake.descriptor_fd, 1);
    assert_true(is_readable());
    poll_once();

    assert_string_equal(fake.text, "a a a|");
    assert_int_equal(otel_flush(0), OTEL_OK);
    close(fake.descriptor_fd);
}

/* A connection that its peer has closed is readable, and nobody waits for it. */
TEST(an_exporter_that_is_not_waited_for_may_be_readable)
{
    fake.pending = 1;
    fake.has_descriptor = true;
    fake.descriptor_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    start();
    spans("a", 3);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_false(is_readable());
    spans("b", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_string_equal(fake.text, "a a a|b b b|");
    assert_false(is_readable());
    close(fake.descriptor_fd);
}

TEST(an_exporters_time_counts_as_well)
{
    fake.pending = 2;
    fake.has_descriptor = true;
    fake.descriptor_timeout_ms = 1;
    fake.descriptor_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    start();
    spans("a", 3);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);

    assert_in_range(otel_poll_timeout(), 0, 1);
    assert_true(becomes_readable(otel_poll_fd(), PATIENCE_MS));
    poll_once();

    assert_string_equal(fake.text, "a a a|");
    close(fake.descriptor_fd);
}

TEST(a_descriptor_that_cannot_be_watched_is_done_without)
{
    fake.pending = 3;
    fake.has_descriptor = true;
    fake.descriptor_timeout_ms = -1;
    fake.descriptor_fd = -1;
    start();
    spans("a", 3);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a a a|");
    assert_int_equal(fake.waits, 0);
}

/* ---- flush and shutdown --------------------------------------------------------------------------- */

/* spec: P18 */
TEST(a_flush_needs_nobody_else)
{
    fake.pending = 3;
    start();
    spans("a", 3);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a a a|");
    assert_int_equal(fake.waits, 0);
}

TEST(the_numbers_of_flushes_may_wrap)
{
    fake.pending = 2;
    start();
    oteli_lifecycle_engine()->flush_wanted = UINT64_MAX - 1;
    oteli_lifecycle_engine()->flush_done = UINT64_MAX - 1;

    for (unsigned i = 1; i <= 4; i++) {
        spans("a", 1);
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
        assert_int_equal(fake.spans, i);
    }
}

/* spec: P18 */
TEST(a_shutdown_needs_nobody_else)
{
    fake.pending = 3;
    start();
    spans("a", 23);

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(fake.spans, 23);
    assert_int_equal(fake.frees, 1);
}

TEST(a_shutdown_comes_back_in_time_and_counts_the_rest)
{
    fake.pending = UINT64_MAX;
    fake.drop = 10;
    fake.drop_reason = OTEL_DROP_UNCONFIRMED;
    start();
    spans("a", 13);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT); /* ten are under way */

    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);

    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);
    assert_int_equal(fake.abandoned, 1);
    assert_int_equal(stats.dropped[OTEL_DROP_UNCONFIRMED], 10);
    assert_int_equal(stats.dropped[OTEL_DROP_SHUTDOWN_TIMEOUT], 3);
    assert_int_equal(stats.queued, 0);
}

/* ---- several threads ------------------------------------------------------------------------------- */

static void *poll_for_ever(void *status)
{
    *(otel_status *)status = otel_poll(FOREVER_MS);
    return NULL;
}

static pthread_t start_polling(otel_status *status)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, poll_for_ever, status), 0);
    struct oteli_engine *const engine = oteli_lifecycle_engine();
    for (bool is_driven = false; !is_driven;) {
        pthread_mutex_lock(&engine->mutex);
        is_driven = engine->driving.is_driven;
        pthread_mutex_unlock(&engine->mutex);
        sched_yield();
    }
    return thread;
}

TEST(a_thread_that_polls_returns_when_the_sdk_stops)
{
    otel_status status = OTEL_ERROR_SYSTEM;
    start();
    const pthread_t thread = start_polling(&status);
    spans("a", 3);

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, OTEL_OK);
    assert_string_equal(fake.text, "a a a|");
}

TEST(others_flush_and_poll_while_one_thread_waits)
{
    otel_status status;
    fake.pending = 2;
    start();
    const pthread_t thread = start_polling(&status);
    spans("a", 3);

    poll_once();
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake.text, "a a a|");
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

TEST(a_thread_that_is_cancelled_leaves_the_sdk_to_others)
{
    otel_status status;
    start();
    const pthread_t thread = start_polling(&status);

    assert_int_equal(pthread_cancel(thread), 0);
    spans("a", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(fake.text, "a a a|");
}

static uint32_t is_held; /* atomic: an export waits while it is set */
static uint32_t is_inside;

static void hold(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    oteli_store_release_32(&is_inside, 1);
    while (oteli_load_acquire_32(&is_held) != 0)
        sched_yield();
}

static void *flush_for_ever(void *status)
{
    *(otel_status *)status = otel_flush(FOREVER_MS);
    return NULL;
}

static void *flush_once(void *status)
{
    *(otel_status *)status = otel_flush(1);
    return NULL;
}

/* Nobody else may drive it then, so the one that was away brings it to its end, although its
 * own time is over; and who waits for a flush is not forgotten. */
TEST(an_exporter_that_hangs_is_given_up_and_its_engine_is_brought_to_an_end)
{
    pthread_t away;
    pthread_t waits;
    otel_status statuses[2];
    fake.during = hold;
    is_held = 1;
    is_inside = 0;
    start();
    struct oteli_engine *const engine = oteli_lifecycle_engine();
    spans("a", 25);
    assert_int_equal(pthread_create(&away, NULL, flush_once, &statuses[0]), 0);
    while (oteli_load_acquire_32(&is_inside) == 0)
        sched_yield();
    assert_int_equal(pthread_create(&waits, NULL, flush_for_ever, &statuses[1]), 0);
    while (oteli_load_acquire_64(&engine->flush_wanted) < 2)
        sched_yield();

    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    oteli_store_release_32(&is_held, 0);
    assert_int_equal(pthread_join(away, NULL), 0);
    assert_int_equal(pthread_join(waits, NULL), 0);

    assert_int_equal(engine->done, 1);
    assert_int_equal(fake.frees, 1);
    assert_int_equal(fake.batches, 1);
}
