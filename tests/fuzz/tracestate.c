/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/tracestate.c - any text as a tracestate: after a threshold was written into its
 * member `ot`, or taken out, the limits hold, the randomness is what it was, and the members of
 * others are those that were there; members that are set or removed leave a valid one. */
#include "sdk/sampling/ot_tracestate.h"
#include "tests/fuzz/fuzz.h"

#include <otel/tracestate.h>

static void check(const char *text, const struct oteli_ot *ot, int64_t threshold)
{
    char out[OTEL_TRACESTATE_SIZE];
    memset(out, 'x', sizeof out);
    const bool has_room = oteli_ot_write(text, ot, threshold, out);
    fuzz_check(memchr(out, '\0', sizeof out) != NULL);
    const struct oteli_ot written = oteli_ot_read(out);
    fuzz_check(written.value.length <= OTELI_OT_MAX);
    if (written.threshold != (has_room ? threshold : OTEL_NEVER_SAMPLE))
        abort();
    if (written.has_th != (has_room && threshold != OTEL_NEVER_SAMPLE))
        abort();
    if (written.has_random != ot->has_random || (ot->has_random && written.random != ot->random))
        abort();
    /* Once more changes nothing. */
    char again[OTEL_TRACESTATE_SIZE];
    oteli_ot_write(out, &written, written.threshold, again);
    fuzz_check(strcmp(out, again) == 0);
}

/* Whatever is set or removed, the result is valid: to remove nothing from it changes nothing. */
static void change(const char *tracestate, const char *text, size_t size)
{
    char key[300] = "";
    char value[300] = "";
    char result[OTEL_TRACESTATE_SIZE];
    char again[OTEL_TRACESTATE_SIZE];
    const size_t key_length = size / 2 < 299 ? size / 2 : 299;
    const size_t value_length = size - size / 2 < 299 ? size - size / 2 : 299;
    memcpy(key, text, key_length);
    memcpy(value, text + size / 2, value_length);
    for (int removes = 0; removes < 2; removes++) {
        const size_t length =
            removes ? otel_tracestate_remove(tracestate, key, result, sizeof result)
                    : otel_tracestate_set(tracestate, key, value, result, sizeof result);
        otel_tracestate_remove(result, "", again, sizeof again);
        if (length != strlen(result) || strcmp(result, again) != 0)
            abort();
    }
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
    change(text, text, size);
    text[size / 2] = '\0';
    change(text, (const char *)data + size / 2, size - size / 2);
    free(text);
    return 0;
}
