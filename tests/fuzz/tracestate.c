/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/tracestate_ot.c - any text as a tracestate: after a threshold was written into its
 * member `ot`, or taken out, the limits hold, the randomness is what it was, and the members of
 * others are those that were there. */
#include "tests/fuzz/fuzz.h"
#include "sdk/samplers/ot.h"

static void check(const char *text, const struct oteli_ot *ot, int64_t threshold)
{
    char out[OTEL_TRACESTATE_SIZE];
    memset(out, 'x', sizeof out);
    const bool has_room = oteli_ot_write(text, ot, threshold, out);
    if (memchr(out, '\0', sizeof out) == NULL)
        abort();
    const struct oteli_ot written = oteli_ot_read(out);
    if (written.value.length > OTELI_OT_MAX)
        abort();
    if (written.threshold != (has_room ? threshold : OTEL_NEVER_SAMPLE))
        abort();
    if (written.has_th != (has_room && threshold != OTEL_NEVER_SAMPLE))
        abort();
    if (written.has_random != ot->has_random || (ot->has_random && written.random != ot->random))
        abort();
    /* Once more changes nothing. */
    char again[OTEL_TRACESTATE_SIZE];
    oteli_ot_write(out, &written, written.threshold, again);
    if (strcmp(out, again) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (text == NULL)
        return 0;
    const struct oteli_ot ot = oteli_ot_read(text);
    if (ot.threshold >= OTELI_THRESHOLD_END || ot.random >= (uint64_t)OTELI_THRESHOLD_END)
        abort();
    check(text, &ot, OTEL_NEVER_SAMPLE);
    check(text, &ot, 0);
    check(text, &ot, OTELI_THRESHOLD_END - 1);
    free(text);
    return 0;
}
