/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/protocol.c - any answer in any protocol. What is made of it can be counted and logged,
 * and says one thing only.
 *
 *     input: protocol, status, flags, then the fields, each behind its length, then the body */
#include "exporters/otlp/protocol/protocol.h"
#include "common/text/utf8.h"
#include "exporters/otlp/call/retry.h"
#include "exporters/otlp/transport/transport.h"
#include "tests/fuzz/fuzz.h"

enum { FIELDS = 5, CUT = 1, TOO_LONG = 2, SENT = 4, HOPELESS = 8, FIRST_FIELD = 16 };

/* A copy of exactly the length, so that a read behind its end is seen. */
static char *take_copy(struct fuzz_input *input)
{
    const otel_slice text = fuzz_take_text(input);
    char *copy = fuzz_text((const uint8_t *)text.data, text.length);
    fuzz_check(copy != NULL);
    return copy;
}

static void check_text(const char *text, size_t size)
{
    const size_t length = strnlen(text, size);
    if (length == size || !oteli_utf8_is_valid(text, length))
        abort();
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f || (c == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
            abort();
    }
}

static void check(const struct oteli_outcome *outcome)
{
    const bool is_delivered = outcome->verdict == OTELI_VERDICT_DELIVERED;
    check_text(outcome->message, sizeof outcome->message);
    check_text(outcome->problem, sizeof outcome->problem);
    if ((unsigned)outcome->verdict > OTELI_VERDICT_FINAL || outcome->rejected > INT64_MAX)
        abort();
    if (!is_delivered && (outcome->rejected != 0 || outcome->message[0] != '\0'))
        abort();
    if (is_delivered != (outcome->problem[0] == '\0'))
        abort();
    if (outcome->is_throttled ? outcome->verdict != OTELI_VERDICT_RETRY : outcome->asked_ms != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, data + size};
    const otel_otlp_protocol protocol =
        (otel_otlp_protocol)(fuzz_take(&input) % (OTEL_OTLP_GRPC + 1));
    /* The statuses that mean something are likely. */
    static const int statuses[] = {0, 200, 200, 200, 400, 413, 429, 503};
    const uint8_t status = fuzz_take(&input);
    const unsigned flags = fuzz_take(&input) | (unsigned)fuzz_take(&input) << 8;
    char *fields[FIELDS] = {0};
    for (unsigned i = 0; i < FIELDS; i++) {
        if (flags & (unsigned)FIRST_FIELD << i)
            fields[i] = take_copy(&input);
    }
    struct oteli_transport_response answer = {
        .status = status < 240 ? statuses[status % 8] : (status - 238) * 50,
        .body_was_sent = flags & SENT,
        .is_hopeless = flags & HOPELESS,
        .is_too_long = flags & TOO_LONG,
        .body = {input.at, (size_t)(input.end - input.at), flags & CUT},
        .retry_after = fields[0],
        .content_type = fields[1],
        .grpc_status = fields[2],
        .grpc_message = fields[3],
        .grpc_details = fields[4],
        .problem = fields[3],
    };
    struct oteli_outcome outcome;
    memset(&outcome, 0xff, sizeof outcome);
    oteli_protocol_read(protocol, &answer, &outcome);
    oteli_retry_read(&outcome, 1700000000);
    check(&outcome);
    if (answer.status >= 200 && answer.status < 300 && protocol != OTEL_OTLP_GRPC &&
        outcome.verdict != OTELI_VERDICT_DELIVERED)
        abort();
    for (unsigned i = 0; i < FIELDS; i++)
        free(fields[i]);
    return 0;
}
