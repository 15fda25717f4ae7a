/* SPDX-License-Identifier: Apache-2.0 */
/* api/ffi.c - the calls of otel/ffi.h that only pass their arguments on. Those with a text are
 * beside the functions that take it with a NUL. Any thread. */
#include <otel/ffi.h>

/* --- otel/trace.h --- */

void otel_span_end_p(const otel_span *span, uint64_t end_ns)
{
    otel_span_end_at(*span, end_ns);
}

void otel_span_end_unless_shorter_p(const otel_span *span, uint64_t min_ns)
{
    otel_span_end_unless_shorter(*span, min_ns);
}

void otel_span_cancel_p(const otel_span *span)
{
    otel_span_cancel(*span);
}

bool otel_span_is_recording_p(const otel_span *span)
{
    return otel_span_is_recording(*span);
}

void otel_span_set_string_p(const otel_span *span, const char *key, size_t key_length,
                            const char *value, size_t length)
{
    if (span->opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_string_n(otel_span_ref_of(span), key, key_length, value, length);
}

void otel_span_set_int_p(const otel_span *span, const char *key, size_t key_length, int64_t value)
{
    if (span->opaque[3] & OTEL_SPAN_IS_RECORDING_)
        otel_span_set_int_n(otel_span_ref_of(span), key, key_length, value);
}

void otel_span_set_double_p(const otel_span *span, const char *key, size_t key_length, double value)
{
    otel_span_set_double_n(otel_span_ref_of(span), key, key_length, value);
}

void otel_span_set_bool_p(const otel_span *span, const char *key, size_t key_length, bool value)
{
    otel_span_set_bool_n(otel_span_ref_of(span), key, key_length, value);
}

void otel_span_set_value_p(const otel_span *span, const char *key, size_t key_length,
                           const otel_value *value)
{
    otel_span_set_value_n(otel_span_ref_of(span), key, key_length, value);
}

void otel_span_add_link_p(const otel_span *span, const otel_link *link)
{
    otel_span_add_link(*span, link);
}

void otel_span_fail_p(const otel_span *span, const char *description, size_t length)
{
    otel_span_set_status_p(span, OTEL_SPAN_STATUS_ERROR, description, length);
}

/* --- otel/value.h --- */

void otel_value_p(otel_value *value, otel_value_type type, const void *data, size_t length)
{
    *value = otel_value_bytes(data, length);
    value->type = type;
    if (type == OTEL_VALUE_BOOL)
        *value = otel_value_bool(*(const bool *)data);
    else if (type == OTEL_VALUE_INT)
        *value = otel_value_int(*(const int64_t *)data);
    else if (type == OTEL_VALUE_DOUBLE)
        *value = otel_value_double(*(const double *)data);
}

/* --- otel/context.h --- */

void otel_span_get_context_p(otel_span_context *result, const otel_span *span)
{
    *result = otel_span_get_context(*span);
}

void otel_span_wrap_p(otel_span *result, const otel_span_context *context)
{
    *result = otel_span_wrap(context);
}

void otel_current_context_p(otel_context *result)
{
    *result = otel_current_context();
}

void otel_current_span_p(otel_span *result)
{
    *result = otel_current_span();
}

void otel_context_with_span_p(otel_context *result, const otel_context *context,
                              const otel_span *span)
{
    *result = otel_context_with_span(*context, *span);
}

void otel_span_mark_here_p(otel_span_mark *result)
{
    *result = otel_span_mark_here();
}

void otel_span_unwind_p(const otel_span_mark *mark)
{
    otel_span_unwind(*mark);
}

void otel_context_create_key_p(otel_context_key *result, const char *name, size_t length)
{
    (void)name; /* for people who read the calling code */
    (void)length;
    *result = otel_context_create_key("");
}

void otel_context_with_value_p(otel_context *result, const otel_context *context,
                               const otel_context_key *key, void *value, otel_context_value *place)
{
    *result = otel_context_with_value(*context, *key, value, place);
}

void *otel_context_get_value_p(const otel_context *context, const otel_context_key *key)
{
    return otel_context_get_value(context, *key);
}

void otel_context_with_attributes_p(otel_context *result, const otel_context *context,
                                    const otel_attribute *attributes, size_t count,
                                    otel_context_attributes *place)
{
    *result = otel_context_with_attributes(*context, attributes, count, place);
}

/* --- otel/propagate.h --- */

void otel_inject_p(const otel_context *context, otel_set_header *set, void *carrier)
{
    otel_inject(context, set, carrier);
}

void otel_extract_p(otel_context *result, const otel_context *context, otel_get_header *get,
                    void *carrier)
{
    *result = otel_extract(context, get, carrier);
}

void otel_extract_from_p(otel_context *result, const otel_context *context,
                         const otel_carrier_reader *reader)
{
    *result = otel_extract_from(context, reader);
}

void otel_propagator_extract_p(otel_context *result, const otel_propagator *propagator,
                               const otel_context *context, otel_get_header *get, void *carrier)
{
    *result = otel_propagator_extract(propagator, context, get, carrier);
}

void otel_propagator_extract_from_p(otel_context *result, const otel_propagator *propagator,
                                    const otel_context *context, const otel_carrier_reader *reader)
{
    *result = otel_propagator_extract_from(propagator, context, reader);
}

void otel_extract_environment_p(otel_context *result, const otel_context *context)
{
    *result = otel_extract_environment(context);
}

/* --- otel/baggage.h --- */

void otel_context_baggage_p(otel_baggage *result, const otel_context *context)
{
    *result = otel_context_baggage(context);
}

void otel_context_with_baggage_p(otel_context *result, const otel_context *context,
                                 const otel_baggage *baggage)
{
    *result = otel_context_with_baggage(*context, *baggage);
}

void otel_baggage_each_p(const otel_baggage *baggage, otel_baggage_visitor *visit, void *state)
{
    otel_baggage_each(*baggage, visit, state);
}

size_t otel_baggage_count_p(const otel_baggage *baggage)
{
    return otel_baggage_count(*baggage);
}

void otel_baggage_keep_p(otel_baggage *result, const otel_baggage *baggage)
{
    *result = otel_baggage_keep(*baggage);
}

void otel_baggage_let_go_p(const otel_baggage *baggage)
{
    otel_baggage_let_go(*baggage);
}
