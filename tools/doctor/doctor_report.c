/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_report.c - the contract is in tools/doctor/doctor_report.h. Each fact stands
 * here once, for people and for JSON. */
#include "tools/doctor/doctor_report.h"

#include "common/text/text.h"
#include "exporters/console/safe_text.h"
#include "tools/doctor/connection/doctor_span.h"
#include "tools/doctor/findings/doctor_log.h"

struct report {
    struct oteli_text out;
    bool is_json;
    size_t facts; /* of this step, or elements of this list */
};

/* ---- words ---------------------------------------------------------------------------- */

static void add_visible(struct oteli_text *out, const char *text)
{
    oteli_text_add_safe(out, oteli_slice_of(text), SIZE_MAX);
}

static void add_quoted(struct oteli_text *json, const char *text)
{
    struct oteli_text visible = {.data = NULL};
    add_visible(&visible, text);
    oteli_json_add_string(json, (otel_slice){visible.data, visible.length});
    json->failed |= visible.failed;
    oteli_text_fini(&visible);
}

/* What stands in the text alone, or in JSON alone. */
static void add_words(struct report *report, const char *words)
{
    if (!report->is_json)
        oteli_text_add_string(&report->out, words);
}

static void add_mark(struct report *report, const char *mark)
{
    if (report->is_json)
        oteli_text_add_string(&report->out, mark);
}

/* ---- facts and lists ------------------------------------------------------------------ */

/* What is empty is left out. */
static void add_fact(struct report *report, const char *key, const char *value)
{
    struct oteli_text *out = &report->out;
    if (value == NULL || value[0] == '\0')
        return;
    if (report->is_json) {
        oteli_text_add_format(out, ",\"%s\":", key);
        add_quoted(out, value);
    } else {
        oteli_text_add_format(out, "%s%s: ", report->facts++ != 0 ? "; " : "  ", key);
        add_visible(out, value);
    }
}

static void add_number(struct report *report, const char *key, long number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", number);
    if (report->is_json)
        oteli_text_add_format(&report->out, ",\"%s\":%s", key, digits);
    else
        add_fact(report, key, digits);
}

static void begin_step(struct report *report, const char *name, enum doctor_result result)
{
    static const char *const words[] = {
        [DOCTOR_NOT_TRIED] = "not_tried", [DOCTOR_FINE] = "fine", [DOCTOR_FAILED] = "failed"};
    report->facts = 0;
    if (report->is_json)
        oteli_text_add_format(&report->out, ",\"%s\":{\"result\":\"%s\"", name, words[result]);
    else
        oteli_text_add_format(&report->out, "  %-8s %-7s", name,
                              result == DOCTOR_FAILED ? "FAILED" : words[result]);
}

static void end_step(struct report *report)
{
    add_mark(report, "}");
    add_words(report, "\n");
}

static void begin_list(struct report *report, const char *name)
{
    report->facts = 0;
    if (report->is_json)
        oteli_text_add_format(&report->out, ",\"%s\":[", name);
}

/* One of a list; in the text behind `before`. */
static void add_element(struct report *report, const char *before, const char *text)
{
    add_mark(report, report->facts++ != 0 ? "," : "");
    add_words(report, before);
    if (report->is_json)
        add_quoted(&report->out, text);
    else
        add_visible(&report->out, text);
    add_words(report, "\n");
}

/* ---- settings ------------------------------------------------------------------------- */

static void add_setting(struct report *report, const struct doctor_setting *setting, size_t width)
{
    struct oteli_text *out = &report->out;
    if (report->is_json) {
        oteli_text_add_string(out, report->facts++ != 0 ? ",{\"name\":" : "{\"name\":");
        add_quoted(out, setting->name);
        add_fact(report, "value", setting->value);
        add_fact(report, "from", setting->from);
        OTELI_JSON_ADD(out, "}");
        return;
    }
    OTELI_JSON_ADD(out, "  ");
    add_visible(out, setting->name);
    oteli_text_add_spaces(out, width - strlen(setting->name) + 2);
    add_visible(out, setting->value);
    if (setting->from[0] != '\0') {
        OTELI_JSON_ADD(out, "  (");
        add_visible(out, setting->from);
        OTELI_JSON_ADD(out, ")");
    }
    add_words(report, "\n");
}

static void add_settings(struct report *report, const struct doctor_record *record,
                         const char *config_file)
{
    size_t width = 0;
    for (size_t i = 0; i < record->setting_count; i++) {
        const size_t length = strlen(record->settings[i].name);
        width = length > width ? length : width;
    }
    if (!report->is_json && record->process.pid != 0)
        oteli_text_add_format(&report->out, "What counts in process %ld (all else is the default)",
                              record->process.pid);
    else
        add_words(report, config_file != NULL ? "Settings of " : "Settings beside the defaults");
    if (!report->is_json && config_file != NULL)
        add_visible(&report->out, config_file);
    add_words(report, "\n");
    begin_list(report, "settings");
    for (size_t i = 0; i < record->setting_count; i++)
        add_setting(report, &record->settings[i], width);
    add_mark(report, "]");
    begin_list(report, "typos");
    for (size_t i = 0; i < record->faults.typo_count; i++) {
        const struct doctor_typo *typo = &record->faults.typos[i];
        char line[2 * DOCTOR_SHORT + 32];
        snprintf(line, sizeof line, "%s: did you mean %s?", typo->name, typo->meant);
        add_element(report, "  ! ", line);
    }
    add_mark(report, "]");
}

/* ---- the way, and the span ------------------------------------------------------------ */

static void add_facts(struct report *report, enum doctor_step step,
                      const struct doctor_answer *answer)
{
    switch (step) {
    case DOCTOR_CONNECT:
        add_fact(report, "tried", answer->addresses);
        break;
    case DOCTOR_TLS:
        add_fact(report, "version", answer->tls_version);
        if (answer->wants_certificate)
            add_fact(report, "wants", "a client's certificate");
        break;
    case DOCTOR_HTTP:
        if (answer->status != 0)
            add_number(report, "status", answer->status);
        add_fact(report, "version", answer->version);
        add_fact(report, "type", answer->content_type);
        add_fact(report, "server", answer->server);
        break;
    case DOCTOR_OTLP:
        if (answer->grpc_status >= 0)
            add_number(report, "grpc_status", answer->grpc_status);
        add_fact(report, "message", answer->message);
        break;
    default:
        break;
    }
    if (answer->results[step] == DOCTOR_FAILED)
        add_fact(report, "problem", answer->problem);
}

static void add_way(struct report *report, const struct doctor_record *record)
{
    static const char *const names[DOCTOR_STEPS] = {"name", "connect", "tls", "http", "otlp"};
    const struct doctor_target *target = &record->target;
    add_words(report, "\nWay to the receiver\n");
    report->facts = 0;
    add_fact(report, "url", target->url);
    if (target->url[0] != '\0')
        add_fact(report, "protocol", doctor_protocol_word(target->protocol));
    add_fact(report, "proxy", target->proxy);
    add_words(report, "\n");
    for (enum doctor_step step = 0; step < DOCTOR_STEPS; step++) {
        const enum doctor_result result = record->answer.results[step];
        if (!report->is_json && result == DOCTOR_NOT_TRIED)
            continue;
        begin_step(report, names[step], result);
        add_facts(report, step, &record->answer);
        end_step(report);
    }
}

static void add_span(struct report *report, const struct doctor_span *span)
{
    add_words(report, "\nThe span \"" DOCTOR_SPAN_NAME "\"\n");
    begin_step(report, "span", span->result);
    add_fact(report, "why", span->why_not_tried);
    add_fact(report, "trace_id", span->trace_id);
    add_fact(report, "counters", span->counters);
    end_step(report);
}

/* ---- all of it ------------------------------------------------------------------------ */

static void add_all(struct report *report, const struct doctor_record *record,
                    const struct doctor_diagnosis *diagnosis, const char *config_file)
{
    if (report->is_json) {
        oteli_text_add_format(&report->out, "{\"healthy\":%s,\"rule\":\"%s\"",
                              diagnosis->is_healthy ? "true" : "false", diagnosis->rule);
        add_fact(report, "diagnosis", diagnosis->sentence);
        add_fact(report, "config_file", config_file);
        if (record->process.pid != 0)
            add_number(report, "pid", record->process.pid);
    }
    add_settings(report, record, config_file);
    if (report->is_json || record->target.url[0] != '\0')
        add_way(report, record);
    add_span(report, &record->span);
    if (doctor_log_count() != 0)
        add_words(report, "\nWhat otel-c says in its log\n");
    begin_list(report, "log");
    for (size_t i = 0; i < doctor_log_count(); i++)
        add_element(report, "  ", doctor_log_line(i));
    add_mark(report, "]");
    add_words(report, "\n");
}

bool doctor_report(const struct doctor_record *record, const struct doctor_diagnosis *diagnosis,
                   const char *config_file, enum doctor_form form, FILE *out)
{
    struct report report = {.is_json = form == DOCTOR_FORM_JSON};
    if (form != DOCTOR_FORM_BRIEF)
        add_all(&report, record, diagnosis, config_file);
    if (!report.is_json)
        add_visible(&report.out, diagnosis->sentence);
    oteli_text_add_string(&report.out, report.is_json ? "}\n" : "\n");
    const bool fine = !report.out.failed;
    if (fine)
        fwrite(report.out.data, 1, report.out.length, out);
    oteli_text_fini(&report.out);
    return fine;
}
