/* SPDX-License-Identifier: Apache-2.0 */
/* tests/interop/sampling.c - what our samplers decide, for another implementation to compare with.
 *
 * Each line of standard input is a question, with blanks between its parts:
 *
 *     SAMPLER RATIO TRACE-ID FLAGS TRACESTATE
 *
 * SAMPLER is traceidratio, probability or parent_threshold; FLAGS are those of a remote parent in
 * hexadecimal, or "-" for a root; TRACESTATE is that of the parent, or "-". Each is answered with a
 * line of "+" or "-" and the tracestate of the span, or "-". One thread; through the public headers
 * only. */
#include <otel/otel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct question {
    char sampler[32];
    char ratio[32];
    char trace_id[33];
    char flags[8];
    char tracestate[OTEL_TRACESTATE_SIZE];
};

static otel_status make_sampler(const struct question *question, otel_sampler *sampler)
{
    const double ratio = strtod(question->ratio, NULL);
    otel_composable root;
    otel_composable like_parent;
    if (strcmp(question->sampler, "traceidratio") == 0)
        return otel_sampler_trace_id_ratio(ratio, sampler);
    if (strcmp(question->sampler, "probability") == 0)
        return otel_sampler_probability(ratio, sampler);
    otel_status status = otel_composable_probability(ratio, &root);
    if (status == OTEL_OK)
        status = otel_composable_parent_threshold(root, &like_parent);
    return status == OTEL_OK ? otel_sampler_composite(like_parent, sampler) : status;
}

static bool read_id(const char *hex, uint8_t trace_id[16])
{
    if (strlen(hex) != 32)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        const char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        trace_id[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return true;
}

static bool answer(const otel_sampler *sampler, const struct question *question)
{
    static const char name[] = "a";
    uint8_t trace_id[16];
    otel_span_context parent = {.is_remote = true};
    if (!read_id(question->trace_id, trace_id))
        return false;
    if (question->flags[0] != '-') {
        memcpy(parent.trace_id, trace_id, sizeof trace_id);
        parent.span_id[7] = 1;
        parent.flags = (uint8_t)strtoul(question->flags, NULL, 16);
    }
    const char *tracestate = question->tracestate[0] != '-' ? question->tracestate : "";
    const otel_context context = {.values = NULL};
    const otel_sampling_query query = {.context = &context,
                                       .parent = &parent,
                                       .parent_tracestate = tracestate,
                                       .trace_id = trace_id,
                                       .trace_id_is_random =
                                           (parent.flags & OTEL_TRACE_FLAG_RANDOM) != 0,
                                       .name = {name, sizeof name - 1}};
    otel_sampling_result result;
    memset(&result, 0, sizeof result);
    sampler->sample(sampler->state, &query, &result);
    const char *after = result.has_tracestate ? result.tracestate : tracestate;
    printf("%c %s\n", result.decision == OTEL_SAMPLING_RECORD_AND_SAMPLE ? '+' : '-',
           *after != '\0' ? after : "-");
    return true;
}

int main(void)
{
    char line[1024];
    struct question question;
    struct question before = {.sampler = ""};
    otel_sampler sampler = {.free = NULL};
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%31s %31s %32s %7s %512s", question.sampler, question.ratio,
                   question.trace_id, question.flags, question.tracestate) != 5)
            return EXIT_FAILURE;
        if (strcmp(question.sampler, before.sampler) != 0 ||
            strcmp(question.ratio, before.ratio) != 0) {
            if (sampler.free != NULL)
                sampler.free(sampler.state);
            if (make_sampler(&question, &sampler) != OTEL_OK)
                return EXIT_FAILURE;
            before = question;
        }
        if (!answer(&sampler, &question))
            return EXIT_FAILURE;
    }
    if (sampler.free != NULL)
        sampler.free(sampler.state);
    return EXIT_SUCCESS;
}
