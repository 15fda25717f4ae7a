/* SPDX-License-Identifier: Apache-2.0 */
/* common/log.c - filter, cap, format, and hand to the handler of the moment.
 *
 * Threads:  any thread. Nothing waits for anything: a call site lets one thread of several
 *           through, and a handler is exchanged without stopping threads that read it.
 * Owns:     the level, the handlers, and a page that forked children share.
 *
 * A handler is two words, function and state, that must never be mixed. They live in a
 * ring of slots: a change takes the next ticket, fills that ticket's slot, and publishes
 * the ticket. A reader takes the slot of the published ticket and keeps what it read
 * unless the ring has come round to that slot again in the meantime; then it starts over.
 *
 *     taken      tickets handed out; moves before a slot is touched
 *     published  the ticket whose slot is valid; 0: the default handler */
#include "common/log.h"

#include "common/base/atomic.h"
#include "common/clock/time_units.h"
#include "common/os/fork.h"
#include "common/os/quiet_write.h"
#include "common/text/secrets.h"
#include "common/text/utf8.h"
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { SLOT_COUNT = 8, LINE_BYTES = OTEL_LOG_MESSAGE_SIZE, LEFT_OUT_BYTES = 96, ROWS = 128 };

#define SILENCE_NS (UINT64_C(10) * 1000 * 1000 * 1000)

struct slot {
    uint64_t handler; /* release by otel_log_set_handler, acquire by call_handler */
    uint64_t state;   /* the same */
};

static struct slot slots[SLOT_COUNT];
static uint64_t taken;
static uint64_t published;
static uint32_t top_level = OTEL_LOG_INFO;

/* What has been said, in memory that forked children share with their parent: a server with a
 * process for each connection says a kind of line as often as a server with one process. */
struct row {
    uint64_t site; /* its address, which is the parent's in children too; 0: a free row */
    struct oteli_log_site said;
};

static _Alignas(OTELI_FORK_PAGE) union {
    struct row rows[ROWS];
    uint8_t bytes[OTELI_FORK_PAGE];
} page;

static struct row *shared; /* NULL: each process counts by itself */

static uint32_t parents_pid; /* of the process that can have forked first; 0: none yet */

/* A handler that calls into otel-c, or is interrupted by a signal handler that does, must
 * not be entered again by its own thread. */
static _Thread_local bool inside;

void oteli_log_set_level(otel_log_level level)
{
    oteli_store_relaxed_32(&top_level, (uint32_t)level);
}

void otel_log_set_handler(otel_log_handler *handler, void *state)
{
    if (handler != NULL) /* it may call otel_log_keep */
        oteli_fork_add(oteli_log_forget_kept);
    const uint64_t ticket = oteli_add_full_64(&taken, 1) + 1;
    struct slot *slot = &slots[ticket % SLOT_COUNT];
    oteli_store_release_64(&slot->handler, (uint64_t)(uintptr_t)handler);
    oteli_store_release_64(&slot->state, (uint64_t)(uintptr_t)state);
    oteli_store_release_64(&published, ticket); /* pairs with the acquire in current_handler */
}

static otel_log_handler *current_handler(void **state)
{
    for (;;) {
        const uint64_t ticket = oteli_load_acquire_64(&published);
        const struct slot *slot = &slots[ticket % SLOT_COUNT];
        const uint64_t handler = oteli_load_acquire_64(&slot->handler);
        *state = (void *)(uintptr_t)oteli_load_acquire_64(&slot->state);
        /* A thread that overwrites this slot has taken its ticket before. */
        if (oteli_load_acquire_64(&taken) - ticket < SLOT_COUNT)
            return (otel_log_handler *)(uintptr_t)handler;
    }
}

bool oteli_log_is_default(void)
{
    void *state;
    return current_handler(&state) == NULL;
}

/* A sandbox that refuses poll makes exports fail, and that has to be said: it may allow select. */
static bool can_write_at_once(int descriptor)
{
    struct pollfd polled = {.fd = descriptor, .events = POLLOUT};
    const int count = poll(&polled, 1, 0);
    if (count >= 0)
        return count == 1 && polled.revents == POLLOUT;
    struct timeval no_time = {0};
    fd_set selected;
    FD_ZERO(&selected);
    FD_SET(descriptor, &selected);
    return select(descriptor + 1, NULL, &selected, NULL, &no_time) == 1;
}

/* Write to stderr, unless the write would block: telemetry must neither stop the program nor end
 * it by SIGPIPE or SIGXFSZ. */
static void write_to_stderr(const char *line, size_t length)
{
    if (can_write_at_once(STDERR_FILENO))
        (void)oteli_quiet_write(STDERR_FILENO, line, length, -1);
}

static const char *level_word(otel_log_level level)
{
    switch (level) {
    case OTEL_LOG_ERROR:
        return "error";
    case OTEL_LOG_WARN:
        return "warning";
    case OTEL_LOG_INFO:
        return "info";
    default:
        return "debug";
    }
}

/* What is no error and no warning appears only when everything was asked for: a program
 * that works must not find our news among its own output. */
static void default_handler(otel_log_level level, bool is_news, const char *message)
{
    if (level > OTEL_LOG_WARN && !is_news && oteli_load_relaxed_32(&top_level) < OTEL_LOG_DEBUG)
        return;
    char line[LINE_BYTES + 48];
    char of_child[16] = "";
    const uint32_t pid = (uint32_t)getpid();
    if (pid != oteli_load_relaxed_32(&parents_pid) && oteli_load_relaxed_32(&parents_pid) != 0)
        snprintf(of_child, sizeof of_child, "[%" PRIu32 "]", pid);
    const int length =
        snprintf(line, sizeof line, "otel-c%s: %s: %s\n", of_child, level_word(level), message);
    if (length > 0)
        write_to_stderr(line, (size_t)length);
}

/* What is logged may come from the environment or from a receiver: make one line of valid
 * UTF-8 of it, without bytes that a terminal obeys, whatever it is. U+0080 to U+009F, of which one
 * begins an escape sequence, are C2 80 to C2 9F. */
static void make_one_line(char *line, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        at += oteli_utf8_valid_prefix(line + at, length - at);
        if (at < length)
            line[at] = '?';
    }
    for (size_t i = 0; i < length; i++) {
        if ((uint8_t)line[i] < 0x20 || line[i] == 0x7F)
            line[i] = '?';
        if ((uint8_t)line[i] == 0xC2 && (uint8_t)line[i + 1] < 0xA0)
            line[i] = line[i + 1] = '?';
    }
}

void oteli_log_share(void)
{
    const int errno_before = errno;
    oteli_store_relaxed_32(&parents_pid, (uint32_t)getpid());
    if (sysconf(_SC_PAGESIZE) == (long)sizeof page &&
        mmap(&page, sizeof page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) != MAP_FAILED)
        OTELI_STORE_RELEASE_PTR(&shared, page.rows); /* pairs with the acquire in shared_site */
    errno = errno_before;
}

/* What counts for a site: its row, or the site itself where there is no row. */
static struct oteli_log_site *shared_site(struct oteli_log_site *site)
{
    struct row *rows = OTELI_LOAD_ACQUIRE_PTR(&shared);
    const uint64_t number = (uint64_t)(uintptr_t)site;
    for (unsigned i = 0; rows != NULL && i < ROWS; i++) {
        struct row *row = &rows[(number / sizeof *site + i) % ROWS];
        if (oteli_load_relaxed_64(&row->site) == 0)
            oteli_cas_full_64(&row->site, 0, number);
        if (oteli_load_relaxed_64(&row->site) == number)
            return &row->said;
    }
    return site;
}

struct left_out {
    uint64_t lines;
    uint64_t lost; /* the spans that they were about */
};

/* Whether this call may speak; then `left_out` is what before it was not said. */
static bool may_speak(struct oteli_log_site *site, uint64_t lost, struct left_out *left_out)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t now_ns = oteli_timespec_ns(now);
    const uint64_t next_ns = oteli_load_relaxed_64(&site->next_ns);
    /* A child in a time namespace of its own may find a time that is far ahead of its clock. */
    const bool is_silent = now_ns < next_ns && next_ns - now_ns <= SILENCE_NS;
    if (is_silent || !oteli_cas_full_64(&site->next_ns, next_ns, now_ns + SILENCE_NS)) {
        oteli_add_full_64(&site->lost, lost);
        oteli_add_full_64(&site->suppressed, 1);
        return false;
    }
    left_out->lines = oteli_exchange_full_64(&site->suppressed, 0);
    left_out->lost = oteli_exchange_full_64(&site->lost, 0);
    return true;
}

static void format_and_call(otel_log_level level, bool is_news, struct left_out left_out,
                            const char *format, va_list arguments)
    __attribute__((format(printf, 4, 0)));

static void format_and_call(otel_log_level level, bool is_news, struct left_out left_out,
                            const char *format, va_list arguments)
{
    char text[LINE_BYTES - LEFT_OUT_BYTES];
    char line[LINE_BYTES];
    const int wanted = vsnprintf(text, sizeof text, format, arguments);
    if (wanted < 0)
        return;
    oteli_hide_in_words(text, line, sizeof text);
    size_t length = strlen(line);
    make_one_line(line, length);
    if (left_out.lost != 0)
        snprintf(line + length, LEFT_OUT_BYTES,
                 " (and %" PRIu64 " more, in %" PRIu64 " messages left out)", left_out.lost,
                 left_out.lines);
    else if (left_out.lines != 0)
        snprintf(line + length, LEFT_OUT_BYTES, " (%" PRIu64 " more like this left out)",
                 left_out.lines);

    void *state;
    otel_log_handler *handler = current_handler(&state);
    if (handler != NULL)
        handler(state, level, line);
    else
        default_handler(level, is_news, line);
}

static void write_line(struct oteli_log_site *site, otel_log_level level, bool is_news,
                       uint64_t lost, const char *format, va_list arguments)
    __attribute__((format(printf, 5, 0)));

static void write_line(struct oteli_log_site *site, otel_log_level level, bool is_news,
                       uint64_t lost, const char *format, va_list arguments)
{
    if (inside || (uint32_t)level > oteli_load_relaxed_32(&top_level))
        return;
    const int errno_before = errno;
    struct left_out left_out = {0};
    if (site == NULL || may_speak(shared_site(site), lost, &left_out)) {
        inside = true;
        format_and_call(level, is_news, left_out, format, arguments);
        inside = false;
    }
    errno = errno_before;
}

void oteli_log_write(struct oteli_log_site *site, otel_log_level level, uint64_t lost,
                     const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(site, level, false, lost, format, arguments);
    va_end(arguments);
}

void oteli_log_tell(bool is_news, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(NULL, OTEL_LOG_INFO, is_news, 0, format, arguments);
    va_end(arguments);
}
