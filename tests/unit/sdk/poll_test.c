/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/poll_test.c - specification of sdk/worker/poll.c: an SDK without a thread. The
 * tick is far away unless a test says otherwise. */
#include "common/clock/clock.h"
#include "sdk/engine/current_engine.h"
#include "sdk/lifecycle/lifecycle.h"

#include "tests/support/polled.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- who can be polled
 * ------------------------------------------------------------------------ */

AROUND_EACH(polled_begin, polled_end);

static void assert_not_polled(otel_status status)
{
    assert_int_equal(otel_poll(FOREVER_MS), status);
    assert_int_equal(otel_poll_fd(), -1);
    assert_int_equal(otel_poll_timeout(), -1);
}

TEST(only_an_sdk_without_a_thread_is_polled)
{
    assert_not_polled(OTEL_ERROR_NOT_STARTED);
    assert_int_equal(faked_start(1, &(otel_sdk_options){0}), OTEL_OK);
    assert_not_polled(OTEL_ERROR_INVALID_ARGUMENT);
}

/* Otherwise a program's loop of otel_poll(1000) would be one without a pause. Without an exporter
 * somebody has to take spans away, as with one. */
/* spec: P18 */
TEST(polling_takes_the_time_it_is_given)
{
    static const struct {
        size_t exporters;
        const char *disabled;
        bool simple;
        bool has_descriptor;
    } rows[] = {{1, NULL, false, true},
                {0, NULL, false, true},
                {1, NULL, true, false},
                {1, "true", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(
            faked_start(rows[i].exporters, &(otel_sdk_options){.threadless = true,
                                                               .simple = rows[i].simple,
                                                               .sdk_disabled = rows[i].disabled}),
            OTEL_OK);
        looks = 0;
        const uint64_t before_ns = oteli_monotonic_ns();
        assert_int_equal(otel_poll(3), OTEL_OK);
        assert_true(oteli_monotonic_ns() >= before_ns + 3 * NS_PER_MS);
        assert_true(looks <= 3);
        assert_int_equal(otel_poll_fd() >= 0, rows[i].has_descriptor);
        assert_int_equal(otel_poll_timeout(), -1);
        faked_restart();
    }
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
    polled_start();
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
    polled_start();
    polled_spans("a", 3);

    errno = EXFULL;
    poll_once();
    (void)!otel_flush(FOREVER_MS);

    assert_int_equal(errno, EXFULL);
}

/* ---- the descriptor
 * ---------------------------------------------------------------------------- */

TEST(an_idle_sdk_needs_nobody_and_the_first_span_after_a_pause_wants_to_be_seen)
{
    polled_start();
    poll_once();
    assert_true(otel_poll_fd() >= 0);
    assert_false(is_readable());
    assert_int_equal(otel_poll_timeout(), -1);

    polled_spans("a", 1);
    assert_true(is_readable());
    poll_once();

    assert_false(is_readable());
    assert_int_equal(fake->batches, 0);
    assert_true(otel_poll_timeout() > FOREVER_MS / 2); /* the tick */
    polled_spans("a", 1);
    assert_false(is_readable());
}

TEST(a_whole_batch_wants_to_be_exported)
{
    polled_start();
    polled_spans("a", 1);
    poll_once();

    polled_spans("a", 130); /* a thread tells of its spans when it has used up a quota */
    assert_true(is_readable());
    while (is_readable())
        poll_once();

    assert_true(fake->batches >= 1);
    assert_int_equal(fake->sizes[0], 10);
    assert_int_equal(fake->spans, 10 * fake->batches);
}

static void poll_when_readable(void)
{
    assert_true(becomes_readable(otel_poll_fd(), PATIENCE_MS));
    poll_once();
}

/* The loop was waiting when somebody else flushed: what it had been told of the time is old. */
TEST(what_a_flush_has_left_to_do_wakes_the_loop)
{
    assert_int_equal(polled_start_with_delay(1), OTEL_OK);
    poll_once();
    const int fd = otel_poll_fd();
    assert_int_equal(otel_poll_timeout(), -1);

    polled_spans("a", 1);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    polled_spans("b", 1);

    while (fake->batches < 2) {
        assert_true(becomes_readable(fd, PATIENCE_MS));
        poll_once();
    }
    assert_string_equal(fake->text, "a|b|");
}

TEST(after_a_shutdown_the_descriptor_says_nothing_any_more)
{
    polled_start();
    polled_spans("a", 3);
    poll_once();
    const int fd = otel_poll_fd();
    struct oteli_engine *const engine = oteli_current.engine;

    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    oteli_waker_wake(&engine->waker);

    assert_false(becomes_readable(fd, 0));
    assert_int_equal(otel_poll_fd(), -1);
    assert_int_equal(otel_poll_timeout(), -1);
    assert_int_equal(otel_poll(0), OTEL_ERROR_NOT_STARTED);
}

/* ---- exporters that have to be waited for
 * ------------------------------------------------------- */

TEST(an_exporter_is_never_waited_for_by_who_has_no_time)
{
    fake->pending = UINT64_MAX;
    polled_start();
    polled_spans("a", 100);

    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    for (unsigned i = 0; i < 10; i++)
        poll_once();
    assert_int_equal(otel_flush(1), OTEL_ERROR_TIMEOUT);

    assert_int_equal(fake->batches, 1);
    assert_int_equal(fake->prepares, 1);
    assert_int_equal(fake->waits, 0);
    fake->polls_left = 1;
    fake->pending = 0;
}

TEST(an_exporter_without_a_descriptor_is_looked_at_now_and_then)
{
    fake->pending = 3;
    polled_start();
    polled_spans("a", 3);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
    assert_in_range(otel_poll_timeout(), 0, 5);

    while (fake->polls < 3)
        poll_when_readable();

    assert_int_equal(otel_flush(0), OTEL_OK);
    assert_string_equal(fake->text, "a a a|");
}

/* An export that wants two looks, of an exporter with this descriptor and time. */
static void begin_export(int fd, int timeout_ms)
{
    fake->pending = 2;
    fake->has_descriptor = true;
    fake->descriptor_fd = fd;
    fake->descriptor_timeout_ms = timeout_ms;
    polled_start();
    polled_spans("a", 3);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT);
}

TEST(an_exporter_with_a_descriptor_is_waited_for_through_ours)
{
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    begin_export(fd, -1);
    assert_false(is_readable());
    assert_true(otel_poll_timeout() > 1000);

    eventfd_write(fd, 1);
    assert_true(is_readable());
    poll_once();

    assert_string_equal(fake->text, "a a a|");
    assert_int_equal(otel_flush(0), OTEL_OK);
    close(fd);
}

TEST(a_descriptor_that_cannot_be_watched_is_done_without)
{
    begin_export(-1, -1);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_string_equal(fake->text, "a a a|");
    assert_int_equal(fake->waits, 0);
}

/* A connection that its peer has closed is readable, and nobody waits for it. */
TEST(an_exporter_that_is_not_waited_for_may_be_readable)
{
    const int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    begin_export(fd, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
        assert_false(is_readable());
        polled_spans("b", 3);
    }
    assert_string_equal(fake->text, "a a a|b b b|");
    close(fd);
}

/* ---- flush and shutdown
 * --------------------------------------------------------------------------- */

TEST(a_shutdown_comes_back_in_time_and_counts_the_rest)
{
    fake->pending = UINT64_MAX;
    fake->drop = 10;
    fake->drop_reason = OTEL_DROP_UNCONFIRMED;
    polled_start();
    polled_spans("a", 13);
    assert_int_equal(otel_flush(0), OTEL_ERROR_TIMEOUT); /* ten are under way */

    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);

    assert_int_equal(fake->abandoned, 1);
    assert_string_equal(faked_sums(0), "13 started, 13 ended: delivered 0, dropped 13 "
                                       "(shutdown_timeout 3, unconfirmed 10)");
}

/* ---- several threads
 * ------------------------------------------------------------------------------- */

static void *poll_for_ever(void *status)
{
    *(otel_status *)status = otel_poll(FOREVER_MS);
    return NULL;
}

static pthread_t start_polling(otel_status *status)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, poll_for_ever, status), 0);
    struct oteli_engine *const engine = oteli_current.engine;
    for (bool is_driven = false; !is_driven;) {
        pthread_mutex_lock(&engine->mutex);
        is_driven = engine->event_fds.is_driven;
        pthread_mutex_unlock(&engine->mutex);
        sched_yield();
    }
    return thread;
}

TEST(a_thread_that_is_cancelled_leaves_the_sdk_to_others)
{
    otel_status status;
    polled_start();
    const pthread_t thread = start_polling(&status);

    assert_int_equal(pthread_cancel(thread), 0);
    polled_spans("a", 3);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(fake->text, "a a a|");
}

static void *flush(void *timeout_ms)
{
    (void)!otel_flush(*(int64_t *)timeout_ms);
    return NULL;
}

/* Nobody else may drive it then, so the one that was away brings it to its end, although its
 * own time is over; and who waits for a flush is not forgotten. */
TEST(an_exporter_that_hangs_is_given_up_and_its_engine_is_brought_to_an_end)
{
    pthread_t away;
    pthread_t waits;
    int64_t times_ms[] = {1, FOREVER_MS};
    fake->during = faked_hold;
    polled_start();
    struct oteli_engine *const engine = oteli_current.engine;
    polled_spans("a", 25);
    assert_int_equal(pthread_create(&away, NULL, flush, &times_ms[0]), 0);
    faked_wait_until_held();
    assert_int_equal(pthread_create(&waits, NULL, flush, &times_ms[1]), 0);
    while (oteli_load_acquire_64(&engine->flush_wanted) < 2)
        sched_yield();

    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    faked_let_go();
    assert_int_equal(pthread_join(away, NULL), 0);
    assert_int_equal(pthread_join(waits, NULL), 0);

    assert_int_equal(engine->done, 1);
    assert_int_equal(fake->frees, 1);
    assert_int_equal(fake->batches, 1);
}
