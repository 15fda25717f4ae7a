/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/ot_tracestate.c - the contracts are in ot_tracestate.h. Any thread; owns
 * nothing. */
#include "sdk/sampling/ot_tracestate.h"

#include "common/text/text.h"

#include <math.h>
#include <otel/tracestate.h>
#include <string.h>

enum { DIGITS = 14, PRECISION = 4 };

static bool begins_with(otel_slice piece, const char *start)
{
    const size_t length = strlen(start);
    return piece.length >= length && memcmp(piece.data, start, length) == 0;
}

static otel_slice behind(otel_slice piece, size_t length)
{
    return (otel_slice){piece.data + length, piece.length - length};
}

/* Lower-case hexadecimal digits; what is left out at the end is zeros. */
static bool parse_hex(otel_slice text, uint64_t *number)
{
    if (text.length == 0 || text.length > DIGITS)
        return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < DIGITS; i++) {
        const char c = i < text.length ? text.data[i] : '0';
        if (c >= '0' && c <= '9')
            sum = sum << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            sum = sum << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *number = sum;
    return true;
}

/* key ":" value, and nothing that may not stand there. */
static bool is_sub_member(otel_slice piece)
{
    size_t i = 0;
    while (i < piece.length && ((piece.data[i] >= 'a' && piece.data[i] <= 'z') ||
                                (i != 0 && piece.data[i] >= '0' && piece.data[i] <= '9')))
        i++;
    if (i == 0 || i == piece.length || piece.data[i] != ':')
        return false;
    while (++i < piece.length) {
        const char c = piece.data[i];
        const bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (!is_good)
            return false;
    }
    return true;
}

/* One sub-member. Of equal keys, which should not be, the first counts. */
static void read_sub_member(struct oteli_ot *ot, otel_slice piece, bool *has_rv)
{
    uint64_t number;
    if (!is_sub_member(piece))
        return;
    if (begins_with(piece, "th:") && !ot->has_th) {
        ot->has_th = true;
        if (parse_hex(behind(piece, 3), &number))
            ot->threshold = (int64_t)number;
    } else if (begins_with(piece, "rv:") && !*has_rv) {
        *has_rv = true;
        ot->has_random = piece.length == 3 + DIGITS && parse_hex(behind(piece, 3), &ot->random);
    }
}

struct oteli_ot oteli_ot_read(const char *tracestate)
{
    struct oteli_ot ot = {.value = {"", 0}, .threshold = OTEL_NEVER_SAMPLE};
    otel_slice rest = oteli_slice_of(tracestate);
    otel_slice member;
    while (oteli_list_next(&rest, &member)) {
        if (!begins_with(member, "ot="))
            continue;
        if (member.length - 3 <= OTELI_OT_MAX)
            ot.value = behind(member, 3);
        break;
    }
    rest = ot.value;
    otel_slice piece;
    bool has_rv = false;
    while (oteli_piece_next(&rest, ';', &piece))
        read_sub_member(&ot, piece, &has_rv);
    return ot;
}

/* The next sub-member that is to stay. */
static bool next_kept(otel_slice *rest, otel_slice *piece)
{
    while (oteli_piece_next(rest, ';', piece))
        if (!begins_with(*piece, "th:") && is_sub_member(*piece))
            return true;
    return false;
}

/* Write the value of `ot` and a NUL. False: there is no room for the threshold. */
static bool put_value(char value[OTELI_OT_MAX + 1], const struct oteli_ot *ot, int64_t threshold)
{
    char th[3 + OTELI_TH_SIZE] = "th:";
    oteli_threshold_text(threshold, th + 3);
    size_t kept = 0;
    otel_slice rest = ot->value;
    otel_slice piece;
    while (next_kept(&rest, &piece))
        kept += piece.length + 1;
    const bool has_th = threshold != OTEL_NEVER_SAMPLE && kept + strlen(th) <= OTELI_OT_MAX;
    char *at = oteli_slice_put(value, oteli_slice_of(has_th ? th : ""));
    at += strlen(at);
    rest = ot->value;
    while (next_kept(&rest, &piece)) {
        if (at != value)
            *at++ = ';';
        at = oteli_slice_put(at, piece) + piece.length;
    }
    return has_th || threshold == OTEL_NEVER_SAMPLE;
}

bool oteli_ot_write(const char *tracestate, const struct oteli_ot *ot, int64_t threshold,
                    char out[OTEL_TRACESTATE_SIZE])
{
    char value[OTELI_OT_MAX + 1];
    const bool has_room = put_value(value, ot, threshold);
    if (value[0] != '\0')
        (void)otel_tracestate_set(tracestate, "ot", value, out, OTEL_TRACESTATE_SIZE);
    else
        (void)otel_tracestate_remove(tracestate, "ot", out, OTEL_TRACESTATE_SIZE);
    return has_room;
}

void oteli_threshold_text(int64_t threshold, char text[OTELI_TH_SIZE])
{
    size_t length = 0;
    for (uint64_t rest = (uint64_t)threshold << 8; rest != 0; rest <<= 4)
        text[length++] = "0123456789abcdef"[rest >> 60];
    if (length == 0)
        text[length++] = '0';
    text[length] = '\0';
}

bool oteli_probability_is_valid(double ratio)
{
    const double least = 1.0 / (double)OTELI_THRESHOLD_END;
    return ratio == 0 || (ratio >= least && ratio <= 1);
}

int64_t oteli_threshold_of(double ratio)
{
    /* Leading digits f say only that the ratio is small, so they do not count. */
    int exponent;
    (void)frexp(ratio, &exponent);
    const int leading = exponent < 0 ? -exponent / 4 : 0;
    const int digits = PRECISION + leading < DIGITS ? PRECISION + leading : DIGITS;
    const int64_t unit = INT64_C(1) << 4 * (DIGITS - digits);
    const int64_t exact = OTELI_THRESHOLD_END - (int64_t)(ldexp(ratio, 56) + 0.5);
    const int64_t rounded = (exact + unit / 2) / unit * unit;
    return rounded < OTELI_THRESHOLD_END ? rounded : OTELI_THRESHOLD_END - 1;
}
