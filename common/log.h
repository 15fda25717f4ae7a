/* SPDX-License-Identifier: Apache-2.0 */
/* common/log.h - what the SDK says about itself, capped.
 *
 * Threads:  any thread; the caller may hold locks of the SDK while the handler runs.
 * Each call site has a struct oteli_log_site: at most one line in ten seconds, a process and its
 * forked children together, and the next one says how many were left out, and of how many spans.
 * On stderr a line of a forked child has its pid. Formatting happens on the stack: no allocation.
 * errno stays what it was, and whatever the arguments hold, a line is one line of valid UTF-8,
 * without the passwords and queries of URLs. A text from outside that is cut, or is one setting,
 * goes through oteli_hide_in_setting before: from a piece one cannot see that it is of a password.
 * Without a handler of the program's, stderr gets errors and warnings, and everything else only at
 * OTEL_LOG_DEBUG; it is never waited for. */
#ifndef OTELI_LOG_H
#define OTELI_LOG_H

#include "common/base/internal_api.h"
#include <otel/base.h>

struct oteli_log_site {
    uint64_t next_ns;    /* monotonic; before it nothing is said */
    uint64_t suppressed; /* lines left out since the last one … */
    uint64_t lost;       /* … and the spans that they were about */
};

#define OTELI_LOG(level, ...) OTELI_LOG_LOST(level, 0, __VA_ARGS__)

/* The same about spans that are lost: `lost` is how many this line is about, and the next one says
 * how many those were that were left out. */
#define OTELI_LOG_LOST(level, lost, ...)                        \
    do {                                                        \
        static struct oteli_log_site oteli_site;                \
        oteli_log_write(&oteli_site, level, lost, __VA_ARGS__); \
    } while (0)

/* Not capped: for start-up, where each line has another cause (a bad setting). */
#define OTELI_LOG_ALWAYS(level, ...) oteli_log_write(NULL, level, 0, __VA_ARGS__)

/* One line of level info that a program's handler always gets; without one stderr gets it where
 * `is_news`, and otherwise only at OTEL_LOG_DEBUG. Not capped. */
OTELI_INTERNAL_API void oteli_log_tell(bool is_news, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

OTELI_INTERNAL_API void oteli_log_write(struct oteli_log_site *site, otel_log_level level,
                                        uint64_t lost, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Forked children count lines together with this process from now on. Once. */
void oteli_log_share(void);

/* The program has no handler of its own. When the process ends, what one needs may be gone. */
OTELI_INTERNAL_API bool oteli_log_is_default(void);

/* In a forked child, of otel_log_keep: there is no message. */
void oteli_log_forget_kept(void);

/* Lines above this level are not formatted at all. Default OTEL_LOG_INFO. */
void oteli_log_set_level(otel_log_level level);

#endif
