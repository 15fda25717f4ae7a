/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/disk_spool.c - see disk_spool.h. Owns the index, the directory and the
 * request that is being sent. */
#include "exporters/otlp/spool/disk_spool.h"
#include "common/base/random.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/text/text.h"
#include "exporters/otlp/spool/spool_index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_MAX_BYTES (UINT64_C(64) << 20)
#define DEFAULT_MAX_AGE_MS (INT64_C(24) * 3600 * 1000)
#define STALE_NS (60 * OTELI_NS_PER_S) /* older temporary files have no writer */

/* The directory is read again when its time stamp has changed. Time stamps have steps of up to 2 s,
 * and two changes may have the same: so it is read again after this time, too, but not before so
 * many times of what reading it costs. */
#define AGAIN_NS (100 * OTELI_NS_PER_MS)
enum { AGAIN_COSTS = 20 };

struct oteli_spool {
    struct oteli_spool_dir dir;
    struct oteli_spool_index index;
    otel_otlp_protocol format;
    uint64_t max_bytes;
    uint64_t max_age_ns; /* UINT64_MAX: none */
    struct oteli_random random;
    uint64_t last_unix_ns; /* when the last file was written */

    bool is_known;           /* the index is what was there: */
    struct timespec changed; /* the directory's time stamp */
    uint64_t scanned_ns;     /* when it was read */
    uint64_t scan_took_ns;

    struct oteli_reusable_buffer buffer;
    struct oteli_spool_file sent; /* what it holds … */
    bool is_sending;              /* … if anything */
    bool is_taken;
    bool is_failing; /* for the log */
};

static uint64_t ns_of(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return oteli_timespec_ns(now);
}

static uint64_t unix_ns(void)
{
    return ns_of(CLOCK_REALTIME);
}

static int64_t boot_ns(void)
{
    return (int64_t)ns_of(CLOCK_BOOTTIME);
}

static uint64_t max_age_ns(int64_t ms)
{
    if (ms == 0)
        ms = DEFAULT_MAX_AGE_MS;
    return ms < 0 ? UINT64_MAX : oteli_ns_after(0, (uint64_t)ms);
}

struct oteli_spool *oteli_spool_open(const char *directory, const char *endpoint,
                                     otel_otlp_protocol format, uint64_t max_bytes,
                                     int64_t max_age_ms)
{
    struct oteli_spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL || !oteli_spool_dir_init(&spool->dir, directory, endpoint, format)) {
        free(spool);
        return NULL;
    }
    spool->format = format;
    spool->max_bytes = max_bytes != 0 ? max_bytes : DEFAULT_MAX_BYTES;
    spool->max_age_ns = max_age_ns(max_age_ms);
    if (!oteli_random_seed(&spool->random))
        spool->random = (struct oteli_random){.state = unix_ns(), .step = oteli_monotonic_ns() | 1};
    oteli_spool_count_opened();
    return spool;
}

void oteli_spool_close(struct oteli_spool *spool)
{
    if (spool == NULL)
        return;
    oteli_spool_index_fini(&spool->index);
    oteli_spool_dir_fini(&spool->dir);
    oteli_reusable_buffer_free(&spool->buffer);
    free(spool);
}

void oteli_spool_warn(struct oteli_spool *spool)
{
    struct oteli_error_text text;
    struct timespec changed;
    spool->is_failing = !oteli_spool_dir_use(&spool->dir, &changed) ||
                        faccessat(spool->dir.own.fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0;
    if (spool->is_failing)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "spans cannot be put to disk in %s: %s", spool->dir.parent,
                         oteli_spool_dir_problem(errno, &text));
}

void oteli_spool_close_copies(const struct oteli_spool *parents)
{
    oteli_spool_dir_close_copies(&parents->dir);
}

/* ---- what there is -------------------------------------------------------------------- */

/* After a change of our own, which the index has seen. */
static void note_own_change(struct oteli_spool *spool)
{
    spool->is_known &= oteli_spool_dir_use(&spool->dir, &spool->changed);
}

static bool is_up_to_date(const struct oteli_spool *spool, const struct timespec *changed,
                          uint64_t now_ns)
{
    const uint64_t cost_ns = AGAIN_COSTS * spool->scan_took_ns;
    return spool->is_known && changed->tv_sec == spool->changed.tv_sec &&
           changed->tv_nsec == spool->changed.tv_nsec &&
           now_ns - spool->scanned_ns < (cost_ns > AGAIN_NS ? cost_ns : AGAIN_NS);
}

/* Perhaps they can be removed by now. */
static void remove_done(struct oteli_spool *spool)
{
    struct oteli_spool_index *index = &spool->index;
    for (size_t i = index->count; i-- != 0;) {
        struct oteli_spool_entry *entry = &index->entries[i];
        if (entry->state == OTELI_SPOOL_IS_DONE &&
            oteli_spool_dir_remove(&spool->dir, &entry->file, OTELI_SPOOL_WHOLE))
            oteli_spool_index_forget(index, entry);
    }
}

/* Know what there is. false: the directory cannot be used now; errno says why. */
static bool refresh(struct oteli_spool *spool)
{
    struct timespec changed;
    if (!oteli_spool_dir_use(&spool->dir, &changed)) {
        spool->is_known = false;
        return false;
    }
    const uint64_t now_ns = oteli_monotonic_ns();
    if (is_up_to_date(spool, &changed, now_ns))
        return true;
    spool->is_known =
        oteli_spool_index_scan(&spool->index, &spool->dir, unix_ns(), boot_ns(), (int64_t)STALE_NS);
    if (!spool->is_known)
        return false;
    spool->changed = changed;
    spool->scan_took_ns = oteli_monotonic_ns() - now_ns;
    spool->scanned_ns = now_ns;
    remove_done(spool);
    return true;
}

/* ---- files that go -------------------------------------------------------------------- */

/* Remove a file that waits, and count it. */
static void let_go(struct oteli_spool *spool, struct oteli_spool_entry *entry,
                   enum oteli_spool_way way, uint64_t rejected)
{
    struct oteli_error_text text;
    const bool is_removed = oteli_spool_dir_remove(&spool->dir, &entry->file, OTELI_SPOOL_WHOLE);
    const bool is_gone = !is_removed && errno == ENOENT;
    if (is_gone && way != OTELI_SPOOL_SENT && way != OTELI_SPOOL_REFUSED)
        way = OTELI_SPOOL_TAKEN;
    if (!is_removed && !is_gone)
        OTELI_LOG(OTEL_LOG_WARN, "a file in %s/%s cannot be removed: %s", spool->dir.parent,
                  spool->dir.name, oteli_spool_dir_problem(errno, &text));
    oteli_spool_index_settle(&spool->index, entry, way, rejected);
    if (is_removed || is_gone)
        oteli_spool_index_forget(&spool->index, entry);
}

/* The oldest but the one that is being sent. */
static struct oteli_spool_entry *oldest(const struct oteli_spool *spool)
{
    struct oteli_spool_entry *entry = oteli_spool_index_next(&spool->index, NULL);
    if (entry != NULL && spool->is_sending &&
        oteli_spool_file_compare(&entry->file, &spool->sent) == 0)
        entry = oteli_spool_index_next(&spool->index, entry);
    return entry;
}

static bool expire(struct oteli_spool *spool)
{
    uint64_t spans = 0;
    const int64_t now_ns = boot_ns();
    for (struct oteli_spool_entry *entry = oldest(spool);
         entry != NULL && (uint64_t)(now_ns - entry->born_ns) > spool->max_age_ns;
         entry = oldest(spool)) {
        spans += entry->file.spans;
        let_go(spool, entry, OTELI_SPOOL_EXPIRED, 0);
    }
    if (spans != 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, spans, "%" PRIu64 " span%s lost in %s: too old to be sent",
                       spans, oteli_is_or_are(spans), spool->dir.parent);
    return spans != 0;
}

static bool make_room(struct oteli_spool *spool, uint64_t needed)
{
    uint64_t spans = 0;
    struct oteli_spool_entry *entry;
    while (spool->index.bytes > spool->max_bytes - needed && (entry = oldest(spool)) != NULL) {
        spans += entry->file.spans;
        let_go(spool, entry, OTELI_SPOOL_EVICTED, 0);
    }
    if (spans != 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, spans,
                       "the spool in %s is full: its oldest %" PRIu64 " span%s lost",
                       spool->dir.parent, spans, oteli_is_or_are(spans));
    return spans != 0;
}

/* ---- put ------------------------------------------------------------------------------ */

/* Later than the last one, but for clocks that were put back. */
static uint64_t written_now(struct oteli_spool *spool)
{
    const uint64_t now_ns = unix_ns();
    const uint64_t last_ns = spool->last_unix_ns;
    spool->last_unix_ns = now_ns <= last_ns && last_ns - now_ns < STALE_NS ? last_ns + 1 : now_ns;
    return spool->last_unix_ns;
}

/* There is room for its entry. */
static bool write_now(struct oteli_spool *spool, const void *bytes, size_t length, uint32_t spans)
{
    const struct oteli_spool_file file = {.written_unix_ns = written_now(spool),
                                          .id = oteli_random_next(&spool->random),
                                          .spans = spans,
                                          .length = (uint32_t)length};
    uint8_t head[OTELI_SPOOL_HEAD];
    oteli_spool_head_write(&file, spool->format, bytes, head);
    if (!oteli_spool_dir_write(&spool->dir, &file, head, bytes))
        return false;
    oteli_spool_index_add(&spool->index, &file, boot_ns());
    return true;
}

static bool put(struct oteli_spool *spool, const void *bytes, size_t length, uint32_t spans)
{
    if (!refresh(spool))
        return false;
    (void)expire(spool);
    if (!oteli_spool_index_fit(&spool->index)) {
        errno = ENOMEM;
        return false;
    }
    (void)make_room(spool, OTELI_SPOOL_HEAD + length);
    bool is_done = write_now(spool, bytes, length, spans);
    if (!is_done && errno == ENOENT && refresh(spool) && oteli_spool_index_fit(&spool->index))
        is_done = write_now(spool, bytes, length, spans); /* the directory was removed just then */
    const int error = errno;
    note_own_change(spool);
    errno = error;
    return is_done;
}

static void tell(struct oteli_spool *spool, bool is_done, int error)
{
    struct oteli_error_text text;
    if (!is_done)
        OTELI_LOG(OTEL_LOG_ERROR, "spans cannot be put to disk in %s: %s", spool->dir.parent,
                  oteli_spool_dir_problem(error, &text));
    else if (spool->is_failing)
        OTELI_LOG(OTEL_LOG_WARN, "spans are put to disk in %s again", spool->dir.parent);
    spool->is_failing = !is_done;
}

bool oteli_spool_put(struct oteli_spool *spool, const void *bytes, size_t length, uint32_t spans)
{
    const int saved_errno = errno;
    bool is_done = false;
    if (length > UINT32_MAX || OTELI_SPOOL_HEAD + (uint64_t)length > spool->max_bytes)
        errno = EFBIG;
    else
        is_done = put(spool, bytes, length, spans);
    tell(spool, is_done, errno);
    if (!is_done)
        oteli_spool_count_failure(spans);
    errno = saved_errno;
    return is_done;
}

/* ---- send ----------------------------------------------------------------------------- */

static void disown(struct oteli_spool *spool, struct oteli_spool_entry *entry)
{
    OTELI_LOG(
        OTEL_LOG_WARN,
        "%s/%s has a file that is not of this program's version, or no file; it is left alone",
        spool->dir.parent, spool->dir.name);
    oteli_spool_index_disown(&spool->index, entry);
}

static void throw_away(struct oteli_spool *spool, struct oteli_spool_entry *entry)
{
    OTELI_LOG_LOST(OTEL_LOG_WARN, entry->file.spans,
                   "a file in %s/%s is damaged; its %" PRIu32 " span%s lost", spool->dir.parent,
                   spool->dir.name, entry->file.spans, oteli_is_or_are(entry->file.spans));
    let_go(spool, entry, OTELI_SPOOL_WAS_TORN, 0);
}

/* Read a file; true: it is good. false: it does not wait any more, or it is one more that cannot be
 * read now (*unreadable), or *is_over says that none can. */
static bool read_one(struct oteli_spool *spool, struct oteli_spool_entry *entry, size_t *unreadable,
                     bool *is_over)
{
    struct oteli_error_text text;
    enum oteli_spool_content content =
        oteli_spool_dir_read(&spool->dir, &entry->file, &spool->buffer);
    if (content == OTELI_SPOOL_GOOD)
        content = oteli_spool_content_check(&entry->file, spool->format, spool->buffer.bytes,
                                            (size_t)oteli_spool_file_bytes(&entry->file));
    switch (content) {
    case OTELI_SPOOL_GOOD:
        return true;
    case OTELI_SPOOL_TORN:
        throw_away(spool, entry);
        break;
    case OTELI_SPOOL_FOREIGN:
        disown(spool, entry);
        break;
    case OTELI_SPOOL_GONE:
        oteli_spool_index_settle(&spool->index, entry, OTELI_SPOOL_TAKEN, 0);
        oteli_spool_index_forget(&spool->index, entry);
        break;
    case OTELI_SPOOL_UNREADABLE:
        OTELI_LOG(OTEL_LOG_WARN, "a file in %s/%s cannot be read now: %s", spool->dir.parent,
                  spool->dir.name, oteli_spool_dir_problem(errno, &text));
        ++*unreadable;
        break;
    case OTELI_SPOOL_NOT_NOW:
        *is_over = true;
        break;
    }
    return false;
}

static bool become_sender(struct oteli_spool *spool)
{
    struct oteli_error_text text;
    if (oteli_spool_dir_lock(&spool->dir))
        return true;
    spool->is_taken = errno == EWOULDBLOCK;
    if (!spool->is_taken)
        OTELI_LOG(OTEL_LOG_ERROR, "spans in %s cannot be sent: %s", spool->dir.parent,
                  oteli_spool_dir_problem(errno, &text));
    return false;
}

/* The entry that waits behind so many older ones. */
static struct oteli_spool_entry *waiting_behind(const struct oteli_spool *spool, size_t older)
{
    struct oteli_spool_entry *entry = oldest(spool);
    while (entry != NULL && older-- != 0)
        entry = oteli_spool_index_next(&spool->index, entry);
    return entry;
}

/* The oldest of those that the index has and that can be read; none is being sent. */
static bool find_first(struct oteli_spool *spool, struct oteli_spool_item *item)
{
    bool has_changed = expire(spool);
    has_changed |= make_room(spool, 0);
    if (has_changed)
        note_own_change(spool);
    bool is_over = oldest(spool) != NULL && !become_sender(spool);
    size_t unreadable = 0;
    for (struct oteli_spool_entry *entry = oldest(spool); entry != NULL && !is_over;
         entry = waiting_behind(spool, unreadable)) {
        if (!read_one(spool, entry, &unreadable, &is_over))
            continue;
        spool->sent = entry->file;
        spool->is_sending = true;
        *item = (struct oteli_spool_item){.bytes = spool->buffer.bytes + OTELI_SPOOL_HEAD,
                                          .length = entry->file.length,
                                          .spans = entry->file.spans};
        return true;
    }
    oteli_spool_dir_unlock(&spool->dir);
    return false;
}

bool oteli_spool_first(struct oteli_spool *spool, struct oteli_spool_item *item)
{
    const int saved_errno = errno;
    bool is_there = false;
    spool->is_taken = false;
    spool->is_known &= spool->index.waiting != 0; /* an empty directory is soon read */
    if (refresh(spool))
        is_there = find_first(spool, item);
    else if (!spool->is_failing)
        tell(spool, false, errno);
    errno = saved_errno;
    return is_there;
}

void oteli_spool_settle(struct oteli_spool *spool, enum oteli_request_call_end end,
                        uint64_t rejected)
{
    const int saved_errno = errno;
    struct oteli_spool_entry *entry = oteli_spool_index_find(&spool->index, &spool->sent);
    const bool is_delivered = end == OTELI_CALL_DELIVERED;
    const bool is_refused = end == OTELI_CALL_REFUSED || end == OTELI_CALL_TOO_LARGE;
    struct timespec changed;
    if (spool->is_sending && entry != NULL && entry->state == OTELI_SPOOL_WAITS &&
        (is_delivered || is_refused)) {
        (void)oteli_spool_dir_use(&spool->dir, &changed); /* or it stays there, and is done with */
        let_go(spool, entry, is_delivered ? OTELI_SPOOL_SENT : OTELI_SPOOL_REFUSED,
               is_delivered ? rejected : 0);
        note_own_change(spool);
    }
    spool->is_sending = false;
    oteli_spool_dir_unlock(&spool->dir);
    errno = saved_errno;
}

bool oteli_spool_is_empty(const struct oteli_spool *spool)
{
    return spool->index.waiting == 0;
}

bool oteli_spool_is_taken(const struct oteli_spool *spool)
{
    return spool->is_taken;
}
