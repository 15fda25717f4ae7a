/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_json.c - the report as one line of JSON: doctor_report_json of
 * tools/doctor/doctor_report.h. */
#include "tools/doctor/doctor_report.h"

#include "common/text/text.h"
#include "exporters/json/json_text.h"
#include "tools/doctor/doctor_log.h"
#include "tools/doctor/settings/doctor_redact.h"

/* ,"key":"text"; what is empty is left out. */
static void add_text(struct oteli_text *json, const char *key, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    OTELI_JSON_ADD(json, ",");
    oteli_json_add_string(json, oteli_slice_of(key));
    OTELI_JSON_ADD(json, ":");
    oteli_json_add_string(json, oteli_slice_of(text));
}

static void add_number(struct oteli_text *json, const char *key, int64_t number)
{
    OTELI_JSON_ADD(json, ",");
    oteli_json_add_string(json, oteli_slice_of(key));
    OTELI_JSON_ADD(json, ":");
    oteli_json_add_signed(json, number);
}

/* An object, which oteli_json_close ends: a step of the way, with what came of it. */
static size_t open_step(struct oteli_text *json, const char *name, enum doctor_result result)
{
    static const char *const words[] = {
        [DOCTOR_NOT_TRIED] = "not_tried", [DOCTOR_FINE] = "fine", [DOCTOR_FAILED] = "failed"};
    if (name != NULL) {
        OTELI_JSON_ADD(json, ",");
        oteli_json_add_string(json, oteli_slice_of(name));
        OTELI_JSON_ADD(json, ":");
    }
    const size_t object = oteli_json_open(json);
    add_text(json, "result", words[result]);
    return object;
}

/* What stands between the elements of an array. */
static void add_comma(struct oteli_text *json, size_t index)
{
    if (index != 0)
        OTELI_JSON_ADD(json, ",");
}

static void add_settings(struct oteli_text *json, const struct doctor_settings *settings)
{
    OTELI_JSON_ADD(json, ",\"settings\":[");
    for (size_t i = 0; i < settings->count; i++) {
        const struct doctor_setting *setting = &settings->list[i];
        add_comma(json, i);
        const size_t object = oteli_json_open(json);
        add_text(json, "name", setting->name);
        add_text(json, "value", setting->value);
        add_text(json, "from", setting->value != NULL ? setting->from : NULL);
        add_text(json, "problem", setting->problem);
        oteli_json_close(json, object);
    }
    OTELI_JSON_ADD(json, "],\"slips\":[");
    for (size_t i = 0; i < settings->slip_count; i++) {
        add_comma(json, i);
        oteli_json_add_string(json, oteli_slice_of(settings->slips[i]));
    }
    OTELI_JSON_ADD(json, "]");
}

static void add_files(struct oteli_text *json, const struct doctor_record *record)
{
    OTELI_JSON_ADD(json, ",\"files\":[");
    for (size_t i = 0; i < record->file_count; i++) {
        const struct doctor_file *file = &record->files[i];
        add_comma(json, i);
        const size_t object = open_step(json, NULL, file->is_bad ? DOCTOR_FAILED : DOCTOR_FINE);
        add_text(json, "name", file->name);
        add_text(json, "path", file->path);
        add_text(json, "state", file->state);
        oteli_json_close(json, object);
    }
    OTELI_JSON_ADD(json, "]");
}

static void add_connect(struct oteli_text *json, const struct doctor_record *record)
{
    size_t object = open_step(json, "name", record->name.result);
    add_text(json, "problem", record->name.problem);
    oteli_json_close(json, object);

    object = open_step(json, "connect", record->connect.result);
    OTELI_JSON_ADD(json, ",\"addresses\":[");
    for (size_t i = 0; i < record->connect.count; i++) {
        const struct doctor_address *address = &record->connect.addresses[i];
        add_comma(json, i);
        const size_t one = oteli_json_open(json);
        add_text(json, "address", address->text);
        add_text(json, "result", doctor_connect_words(address->error));
        add_number(json, "ms", address->ms);
        oteli_json_close(json, one);
    }
    OTELI_JSON_ADD(json, "]");
    oteli_json_close(json, object);
}

static void add_tls(struct oteli_text *json, const struct doctor_tls *tls)
{
    const size_t object = open_step(json, "tls", tls->result);
    add_text(json, "version", tls->version);
    add_text(json, "names", tls->names);
    add_text(json, "issuer", tls->issuer);
    add_text(json, "not_after", tls->not_after);
    add_text(json, "words", tls->words);
    oteli_json_close(json, object);
}

static void add_answer(struct oteli_text *json, const struct doctor_record *record)
{
    const struct doctor_http *http = &record->http;
    size_t object = open_step(json, "http", http->result);
    if (http->status != 0)
        add_number(json, "status", http->status);
    add_text(json, "content_type", http->content_type);
    add_text(json, "server", http->server);
    add_text(json, "words", http->words);
    oteli_json_close(json, object);

    object = open_step(json, "otlp", record->otlp.result);
    if (record->otlp.grpc_status >= 0)
        add_number(json, "grpc_status", record->otlp.grpc_status);
    add_text(json, "words", record->otlp.words);
    oteli_json_close(json, object);
}

static void add_span(struct oteli_text *json, const struct doctor_span *span)
{
    const size_t object = open_step(json, "span", span->result);
    add_text(json, "why", span->why_not_tried);
    add_text(json, "trace_id", span->trace_id);
    add_text(json, "counters", span->counters);
    add_text(json, "words", span->words);
    oteli_json_close(json, object);
}

bool doctor_report_json(const struct doctor_report *report, FILE *out)
{
    struct oteli_text json = {.data = NULL};
    const struct doctor_record *record = report->record;
    const size_t object = oteli_json_open(&json);
    add_text(&json, "diagnosis", report->diagnosis->sentence);
    add_text(&json, "rule", report->diagnosis->rule);
    if (report->diagnosis->is_healthy)
        OTELI_JSON_ADD(&json, ",\"healthy\":true");
    else
        OTELI_JSON_ADD(&json, ",\"healthy\":false");
    add_text(&json, "config_file", report->config_file);
    if (report->pid != 0)
        add_number(&json, "pid", report->pid);
    add_text(&json, "url", record->target.url);
    add_text(&json, "proxy", record->target.proxy);
    add_settings(&json, report->settings);
    add_files(&json, record);
    add_connect(&json, record);
    add_tls(&json, &record->tls);
    add_answer(&json, record);
    add_span(&json, &record->span);
    OTELI_JSON_ADD(&json, ",\"log\":[");
    for (size_t i = 0; i < doctor_log_count(); i++) {
        add_comma(&json, i);
        oteli_json_add_string(&json, oteli_slice_of(doctor_log_line(i)));
    }
    OTELI_JSON_ADD(&json, "]");
    oteli_json_close(&json, object);
    const bool fine = !json.failed;
    if (fine) {
        doctor_put_visible(out, json.data, json.length, true);
        fputc('\n', out);
    }
    oteli_text_fini(&json);
    return fine;
}
