/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats/stats_read.c - otel_stats_read, and the numbers as a text. Any thread. */
#include "common/text/text.h"
#include "sdk/engine/current_engine.h"
#include "sdk/stats/stats.h"

#include <otel/sdk.h>
#include <stdio.h>
#include <string.h>

otel_status otel_stats_read(size_t index, otel_stats *stats)
{
    if (stats == NULL || stats->size < sizeof stats->size)
        return OTEL_ERROR_INVALID_ARGUMENT;
    otel_stats whole = {.size = stats->size};
    oteli_current_lock();
    struct oteli_engine *engine = oteli_current.engine;
    const bool is_known = engine != NULL && index < engine->pipeline_count;
    if (is_known)
        oteli_stats_fill(&whole, engine, index);
    /* In a forked child that has no SDK yet: what its parent's had. */
    const bool is_inherited = oteli_current.is_inherited && oteli_current.inherited != NULL &&
                              index < oteli_current.inherited->pipeline_count;
    oteli_current_unlock();
    memcpy(stats, &whole, whole.size < sizeof whole ? whole.size : sizeof whole);
    return is_known || is_inherited ? OTEL_OK : OTEL_ERROR_INVALID_ARGUMENT;
}

/* 1234567 as "1,234,567". */
static const char *with_commas(uint64_t number, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

static void put_count(struct oteli_text_builder *to, const char *label, uint64_t count)
{
    char number[32];
    oteli_build(to, "%s %s", label, with_commas(count, number));
}

/* A sum and its parts, for example "dropped 3 (unconfirmed 1, no_memory 2)". */
static void put_reasons(struct oteli_text_builder *to, const char *label, const uint64_t *counts,
                        unsigned reasons, const char *(*name)(unsigned reason))
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < reasons; i++)
        sum += counts[i];
    put_count(to, label, sum);
    const char *separator = " (";
    for (unsigned i = 0; i < reasons; i++) {
        if (counts[i] == 0)
            continue;
        oteli_build(to, "%s", separator);
        put_count(to, name(i), counts[i]);
        separator = ", ";
    }
    if (sum != 0)
        oteli_build(to, ")");
}

static const char *name_of_withheld(unsigned reason)
{
    return otel_withheld_reason_string((otel_withheld_reason)reason);
}

static const char *name_of_dropped(unsigned reason)
{
    return otel_drop_reason_string((otel_drop_reason)reason);
}

size_t otel_stats_describe(const otel_stats *stats, char *text, size_t size)
{
    struct oteli_text_builder to = {text, size, 0};
    otel_stats known = {0};
    memcpy(&known, stats, stats->size < sizeof known ? stats->size : sizeof known);
    uint64_t withheld = 0;
    for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        withheld += known.withheld[i];
    put_count(&to, "delivered", known.delivered);
    if (known.rejected != 0)
        put_count(&to, ", rejected", known.rejected);
    if (known.spooled != 0)
        put_count(&to, ", spooled", known.spooled);
    if (known.queued != 0)
        put_count(&to, ", queued", known.queued);
    if (known.open != 0)
        put_count(&to, ", open", known.open);
    if (known.unsampled != 0)
        put_count(&to, ", unsampled", known.unsampled);
    if (withheld != 0)
        put_reasons(&to, ", withheld", known.withheld, OTEL_WITHHELD_REASON_COUNT,
                    name_of_withheld);
    put_reasons(&to, ", dropped", known.dropped, OTEL_DROP_REASON_COUNT, name_of_dropped);
    return to.length;
}
