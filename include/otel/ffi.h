/* SPDX-License-Identifier: Apache-2.0 */
/* otel/ffi.h - the calls of the other headers as symbols that any language can call, and that take
 * texts with a length.
 *
 * One rule: `_p` behind the name of a call is the same call, a function of libotel-api in which
 *
 *   - spans, contexts, marks, keys and baggages are pointers, and so is what the call returns if
 *     that is a struct: its first argument, which may also be one of those that go in;
 *   - each text has its length behind it and needs no NUL; NULL and 0 is an empty text, or none.
 *
 * Every call of trace.h, context.h, propagate.h and baggage.h that is inline or has a struct by
 * value has such a form, but otel_span_enter_address; arrays and bytes are set as values.
 * All others have only pointers, numbers and texts with a NUL, and are called as they are. Four
 * that the inline functions need are declared there: otel_span_enter_p, otel_span_start_p,
 * otel_context_attach_p and otel_context_detach_p. The key of an otel_attribute has its length
 * at the end of the struct, as do texts in options; 0: it has a NUL.
 *
 * Stable:   the name, arguments and meaning of each function in include/otel that has no `_` at its
 *           end, and size and members of each struct, while the libraries keep their names
 *           (libotel-api.so.0.1). A struct that begins with `size` can become longer. So another
 *           language may have the layouts written down: a span is 32 bytes, a context 48, a span
 *           context 32, a value 24, an attribute 40, a link 48, all of them aligned to 8.
 * Threads, signals, errors, texts, source: as of the call without `_p`. A pointer to a struct is
 *           not NULL, but for a context where that call says what NULL is. */
#ifndef OTEL_FFI_H
#define OTEL_FFI_H

#include <otel/baggage.h>
#include <otel/propagate.h>
#include <otel/trace.h>

OTEL_BEGIN_DECLS

/* --- otel/trace.h --- */

/* Both, otel_tracer_get and otel_tracer_get_with; `options` may be NULL. */
OTEL_API otel_tracer *otel_tracer_get_p(const char *name, size_t name_length, const char *version,
                                        size_t version_length, const otel_tracer_options *options);

/* At `end_ns`; 0: now. */
OTEL_API void otel_span_end_p(const otel_span *span, uint64_t end_ns);
OTEL_API void otel_span_end_unless_shorter_p(const otel_span *span, uint64_t min_ns);
OTEL_API void otel_span_cancel_p(const otel_span *span);
OTEL_API bool otel_span_is_recording_p(const otel_span *span);

OTEL_API void otel_span_set_string_p(const otel_span *span, const char *key, size_t key_length,
                                     const char *value, size_t length);
OTEL_API void otel_span_set_int_p(const otel_span *span, const char *key, size_t key_length,
                                  int64_t value);
OTEL_API void otel_span_set_double_p(const otel_span *span, const char *key, size_t key_length,
                                     double value);
OTEL_API void otel_span_set_bool_p(const otel_span *span, const char *key, size_t key_length,
                                   bool value);
OTEL_API void otel_span_set_value_p(const otel_span *span, const char *key, size_t key_length,
                                    const otel_value *value);

/* At `time_ns`; 0: now. */
OTEL_API void otel_span_add_event_p(const otel_span *span, const char *name, size_t name_length,
                                    uint64_t time_ns, const otel_attribute *attributes,
                                    size_t count);
OTEL_API void otel_span_add_link_p(const otel_span *span, const otel_link *link);
OTEL_API void otel_span_set_status_p(const otel_span *span, otel_span_status status,
                                     const char *description, size_t length);
OTEL_API void otel_span_fail_p(const otel_span *span, const char *description, size_t length);
OTEL_API void otel_span_update_name_p(const otel_span *span, const char *name, size_t name_length);

/* A text that is NULL is left out. */
OTEL_API void otel_span_record_exception_p(const otel_span *span, const char *type,
                                           size_t type_length, const char *message,
                                           size_t message_length, const char *stacktrace,
                                           size_t stacktrace_length,
                                           const otel_attribute *attributes, size_t count);

/* --- otel/value.h --- */

/* One for all types: `data` is the bytes of a string or of bytes, or `length` elements of an array
 * or a map; or it points to the one bool, int64_t or double, and `length` does not count. Borrowed
 * as by the functions of value.h. */
OTEL_API void otel_value_p(otel_value *value, otel_value_type type, const void *data,
                           size_t length);

/* --- otel/context.h --- */

OTEL_API void otel_span_get_context_p(otel_span_context *result, const otel_span *span);
OTEL_API void otel_span_wrap_p(otel_span *result, const otel_span_context *context);
OTEL_API void otel_span_context_make_p(otel_span_context *result, const uint8_t trace_id[16],
                                       const uint8_t span_id[8], uint8_t flags, bool is_remote,
                                       const char *tracestate, size_t length);

OTEL_API void otel_current_context_p(otel_context *result);
OTEL_API void otel_current_span_p(otel_span *result);
OTEL_API void otel_context_with_span_p(otel_context *result, const otel_context *context,
                                       const otel_span *span);

OTEL_API void otel_span_mark_here_p(otel_span_mark *result);
OTEL_API void otel_span_unwind_p(const otel_span_mark *mark);

OTEL_API void otel_context_create_key_p(otel_context_key *result, const char *name, size_t length);
OTEL_API void otel_context_with_value_p(otel_context *result, const otel_context *context,
                                        const otel_context_key *key, void *value,
                                        otel_context_value *place);
OTEL_API void *otel_context_get_value_p(const otel_context *context, const otel_context_key *key);
OTEL_API void otel_context_with_attributes_p(otel_context *result, const otel_context *context,
                                             const otel_attribute *attributes, size_t count,
                                             otel_context_attributes *place);

/* --- otel/propagate.h --- */

OTEL_API void otel_inject_p(const otel_context *context, otel_set_header *set, void *carrier);
OTEL_API void otel_extract_p(otel_context *result, const otel_context *context,
                             otel_get_header *get, void *carrier);
OTEL_API void otel_extract_from_p(otel_context *result, const otel_context *context,
                                  const otel_carrier_reader *reader);
OTEL_API void otel_propagator_extract_p(otel_context *result, const otel_propagator *propagator,
                                        const otel_context *context, otel_get_header *get,
                                        void *carrier);
OTEL_API void otel_propagator_extract_from_p(otel_context *result,
                                             const otel_propagator *propagator,
                                             const otel_context *context,
                                             const otel_carrier_reader *reader);
OTEL_API void otel_extract_environment_p(otel_context *result, const otel_context *context);

/* --- otel/baggage.h --- */

OTEL_API void otel_context_baggage_p(otel_baggage *result, const otel_context *context);
OTEL_API void otel_context_with_baggage_p(otel_context *result, const otel_context *context,
                                          const otel_baggage *baggage);
OTEL_API void otel_baggage_set_p(otel_baggage *result, const otel_baggage *baggage,
                                 const char *name, size_t name_length, const char *value,
                                 size_t value_length, const char *metadata, size_t metadata_length);
OTEL_API void otel_baggage_remove_p(otel_baggage *result, const otel_baggage *baggage,
                                    const char *name, size_t name_length);
OTEL_API size_t otel_baggage_get_p(const otel_baggage *baggage, const char *name,
                                   size_t name_length, char *value, size_t size);
OTEL_API size_t otel_baggage_get_metadata_p(const otel_baggage *baggage, const char *name,
                                            size_t name_length, char *metadata, size_t size);
OTEL_API void otel_baggage_each_p(const otel_baggage *baggage, otel_baggage_visitor *visit,
                                  void *state);
OTEL_API size_t otel_baggage_count_p(const otel_baggage *baggage);
OTEL_API void otel_baggage_keep_p(otel_baggage *result, const otel_baggage *baggage);
OTEL_API void otel_baggage_let_go_p(const otel_baggage *baggage);

OTEL_END_DECLS
#endif
