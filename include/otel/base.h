/* SPDX-License-Identifier: Apache-2.0 */
/* otel/base.h - what every other header of otel-c builds on.
 *
 * Three words say which threads may call a function; every header uses them:
 *   any thread             concurrently, without a lock of the caller's
 *   one thread at a time   from any thread, but never two calls on one object at once
 *   start/stop only        while no other thread uses the object at all
 *
 * Times are nanoseconds since the Unix epoch (`_ns`) or milliseconds of duration
 * (`_ms`). Pointers that a function takes are borrowed for the call unless its
 * comment says that they are adopted. What a function returns needs free() only where its comment
 * says so.
 *
 * Threads:  any thread, but for otel_log_set_handler.
 * Signals:  a handler may call all but otel_log_set_handler.
 * Errors:   nothing here fails.
 * Source:   OpenTelemetry specification, error-handling.md, for the log. */
#ifndef OTEL_BASE_H
#define OTEL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OTEL_VERSION_MAJOR 0
#define OTEL_VERSION_MINOR 1
#define OTEL_VERSION_PATCH 0
#define OTEL_VERSION "0.1.0"

#ifdef __cplusplus
#define OTEL_BEGIN_DECLS extern "C" {
#define OTEL_END_DECLS }
#else
#define OTEL_BEGIN_DECLS
#define OTEL_END_DECLS
#endif

/* The null pointer that both languages have without a warning, in what headers make of calls. */
#ifdef __cplusplus
#define OTEL_NULL_ nullptr
#else
#define OTEL_NULL_ ((void *)0)
#endif

/* OTEL_INLINE functions are never traced by -finstrument-functions (otel/functions.h).
 * Calls of the library leave out the PLT where the compiler can: in code that was not run for a
 * while it is one more branch that is mispredicted, and a cache line. */
#if defined(__GNUC__)
#define OTEL_API_DATA __attribute__((visibility("default")))
#ifdef __has_attribute
#if __has_attribute(noplt)
#define OTEL_API OTEL_API_DATA __attribute__((noplt))
#endif
#endif
#ifndef OTEL_API
#define OTEL_API OTEL_API_DATA
#endif
#define OTEL_MUST_USE __attribute__((warn_unused_result))
#define OTEL_NOTHROW __attribute__((nothrow)) /* callers in C++ need no landing pad */
#define OTEL_INLINE static inline __attribute__((no_instrument_function))
#else
#define OTEL_API_DATA
#define OTEL_API
#define OTEL_MUST_USE
#define OTEL_NOTHROW
#define OTEL_INLINE static inline
#endif

OTEL_BEGIN_DECLS

/* A number option that is zero is unset, as if it were not there. For those where the
 * number zero means something: no limit for timeouts, none at all for counts and lengths. */
#define OTEL_ZERO (-1)

/* What lifecycle calls (start, flush, shutdown, constructors) answer.
 * Instrumentation calls answer nothing: they never fail, and count what is lost. */
typedef enum otel_status {
    OTEL_OK = 0,
    OTEL_ERROR_INVALID_ARGUMENT = 1, /* the call cannot be right whatever the machine does */
    OTEL_ERROR_NO_MEMORY = 2,
    OTEL_ERROR_TIMEOUT = 3,         /* the deadline came first */
    OTEL_ERROR_EXPORT_FAILED = 4,   /* done in time, but not everything was delivered */
    OTEL_ERROR_ALREADY_STARTED = 5, /* otel_start while an SDK is running */
    OTEL_ERROR_NOT_STARTED = 6,     /* flush or shutdown without a running SDK */
    OTEL_ERROR_SYSTEM = 7,          /* a system call failed: no thread, no such file */
    OTEL_ERROR_UNSUPPORTED = 8      /* not in this build */
} otel_status;

/* One English phrase for a status, for example "no memory". Static. */
OTEL_API const char *otel_status_string(otel_status status);

/* The version of the library that is running, for example "0.1.0". Static. */
OTEL_API const char *otel_version(void);

/* How severe a message of the SDK about itself is (OTEL_LOG_LEVEL). */
typedef enum otel_log_level {
    OTEL_LOG_NONE = 1,
    OTEL_LOG_ERROR = 2,
    OTEL_LOG_WARN = 3,
    OTEL_LOG_INFO = 4,
    OTEL_LOG_DEBUG = 5
} otel_log_level;

/* Receives what the SDK has to say about itself, one line without a newline. Called from any
 * thread, also from several at once, but not again on a thread that is in it. It must not call into
 * otel-c, but for otel_log_keep: the caller may hold locks of the SDK, and such a call can wait for
 * ever. */
typedef void otel_log_handler(void *state, otel_log_level level, const char *message);

/* Set the handler of messages. NULL puts the default back: warnings and errors to stderr, each kind
 * at most once in ten seconds, by a process and its forked children together (whose lines have
 * their pid), and where spans go if that is a default. Start/stop only. */
OTEL_API void otel_log_set_handler(otel_log_handler *handler, void *state);

/* A handler that keeps messages for otel_log_take, up to 32 of them:
 *     otel_log_set_handler(otel_log_keep, NULL);
 * for programs whose own log may be used on their own threads only. Any thread, also a signal
 * handler, and a handler of the program's: it waits for nothing, and allocates nothing. */
OTEL_API void otel_log_keep(void *state, otel_log_level level, const char *message);

/* Take the oldest message that is kept. False: there is none. `text` gets it with a NUL, cut to
 * `size`, for which OTEL_LOG_MESSAGE_SIZE is enough; `level` may be NULL. Where more came than were
 * taken, the last message says how many were lost. A forked child begins with none. Any thread,
 * also a signal handler: it waits for nothing, and allocates nothing. */
#define OTEL_LOG_MESSAGE_SIZE 1024
OTEL_API bool otel_log_take(otel_log_level *level, char *text, size_t size);

OTEL_END_DECLS
#endif
