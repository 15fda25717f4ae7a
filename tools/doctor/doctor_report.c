/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_report.c - the report for people; the contracts are in
 * tools/doctor/doctor_report.h. */
#include "tools/doctor/doctor_report.h"

#include "tools/doctor/connection/doctor_span.h"
#include "tools/doctor/doctor_log.h"
#include "tools/doctor/settings/doctor_redact.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Print, and show what was filled in as it is: only a newline at the end of the format is one. */
static int say(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int say(FILE *out, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length <= 0)
        return 0;
    const bool ends_line = format[strlen(format) - 1] == '\n';
    doctor_put_visible(out, text, (size_t)length - ends_line, false);
    if (ends_line)
        fputc('\n', out);
    free(text);
    return length;
}

static const char *result_word(enum doctor_result result)
{
    static const char *const words[] = {
        [DOCTOR_NOT_TRIED] = "not tried", [DOCTOR_FINE] = "fine", [DOCTOR_FAILED] = "FAILED"};
    return words[result];
}

const char *doctor_connect_words(int error)
{
    return error == 0 ? "connected" : strerror(error);
}

/* ---- settings ------------------------------------------------------------------------- */

static void print_settings(const struct doctor_report *report, FILE *out)
{
    const struct doctor_settings *settings = report->settings;
    int width = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const int length = (int)strlen(settings->list[i].name);
        width = settings->list[i].value != NULL && length > width ? length : width;
    }
    if (report->pid != 0)
        say(out, "What counts in process %ld (all else is the default)\n", report->pid);
    else if (report->config_file != NULL)
        say(out, "Settings of %s (all other variables are ignored)\n", report->config_file);
    else
        fputs("Settings\n", out);
    for (size_t i = 0; i < settings->count; i++) {
        const struct doctor_setting *setting = &settings->list[i];
        if (setting->value != NULL)
            say(out, setting->from[0] != '\0' ? "  %-*s  %s  (%s)\n" : "  %-*s  %s\n", width,
                setting->name, setting->value, setting->from);
        if (setting->problem[0] != '\0')
            say(out, "  ! %s\n", setting->problem);
    }
    int column = 0;
    for (size_t i = 0; i < settings->count; i++) {
        if (settings->list[i].value != NULL)
            continue;
        if (column > 100) {
            fputc('\n', out);
            column = 0;
        }
        if (column == 0)
            column = say(out, "  unset:");
        column += say(out, " %s", settings->list[i].name);
    }
    if (column != 0)
        fputc('\n', out);
}

static void print_doubts(const struct doctor_report *report, FILE *out)
{
    for (size_t i = 0; i < report->settings->slip_count; i++)
        say(out, "  ! %s\n", report->settings->slips[i]);
    const struct doctor_record *record = report->record;
    for (size_t i = 0; i < record->file_count; i++) {
        const struct doctor_file *file = &record->files[i];
        say(out, "  %c %s: %s %s%s\n", file->is_bad ? '!' : ' ', file->name, file->path,
            file->is_bad ? "" : "is ", file->state);
    }
}

/* ---- the way -------------------------------------------------------------------------- */

static void print_step(FILE *out, enum doctor_result result, const char *name)
{
    say(out, "  %-8s %-9s ", name, result_word(result));
}

static void print_target(const struct doctor_target *target, FILE *out)
{
    fputs("\nWay to the receiver\n", out);
    say(out, "  %-18s %s (%s)\n", "URL", target->url, doctor_protocol_word(target->protocol));
    if (target->proxy[0] != '\0')
        say(out, "  %-18s %s (%s)\n", "proxy", target->proxy, target->proxy_from);
}

static void print_connect(const struct doctor_record *record, FILE *out)
{
    const struct doctor_target *target = &record->target;
    const struct doctor_connect *connect = &record->connect;
    const bool is_proxy = target->proxy[0] != '\0';
    if (target->unix_path[0] == '\0') {
        print_step(out, record->name.result, "name");
        say(out, "%s", is_proxy ? target->proxy_host : target->host);
        if (record->name.result == DOCTOR_FAILED)
            say(out, ": %s", record->name.problem);
        fputc('\n', out);
    }
    if (connect->result == DOCTOR_NOT_TRIED)
        return;
    print_step(out, connect->result, "connect");
    for (size_t i = 0; i < connect->count; i++) {
        const struct doctor_address *address = &connect->addresses[i];
        say(out, "%s%s: %s (%u ms)", i != 0 ? ", " : "", address->text,
            doctor_connect_words(address->error), address->ms);
    }
    fputc('\n', out);
}

static void print_tls(const struct doctor_tls *tls, FILE *out)
{
    if (tls->result == DOCTOR_NOT_TRIED)
        return;
    print_step(out, tls->result, "TLS");
    if (tls->version[0] != '\0')
        say(out, "%s; ", tls->version);
    if (tls->names[0] != '\0')
        say(out, "certificate for %s, from %s, until %s", tls->names, tls->issuer, tls->not_after);
    if (tls->wants_certificate)
        say(out, "; wants a client's certificate");
    if (tls->result == DOCTOR_FAILED)
        say(out, "%s%s", tls->names[0] != '\0' ? ": " : "", tls->words);
    fputc('\n', out);
}

static void print_answer(const struct doctor_record *record, FILE *out)
{
    const struct doctor_http *http = &record->http;
    const struct doctor_otlp *otlp = &record->otlp;
    if (http->result == DOCTOR_NOT_TRIED)
        return;
    print_step(out, http->result, "HTTP");
    if (http->status != 0)
        say(out, "status %d (HTTP/%s)%s%s%s%s", http->status, http->version,
            http->content_type[0] != '\0' ? ", " : "", http->content_type,
            http->server[0] != '\0' ? ", from " : "", http->server);
    if (http->words[0] != '\0')
        say(out, "%s%s", http->status != 0 ? ": " : "", http->words);
    fputc('\n', out);
    if (http->result != DOCTOR_FINE)
        return;
    print_step(out, otlp->result, "OTLP");
    if (otlp->grpc_status >= 0)
        say(out, "gRPC status %d ", otlp->grpc_status);
    say(out, "%s\n",
        otlp->result == DOCTOR_FINE && otlp->words[0] == '\0' ? "takes requests" : otlp->words);
}

static void print_span(const struct doctor_span *span, FILE *out)
{
    fputs("\nTest span\n", out);
    if (span->result == DOCTOR_NOT_TRIED) {
        say(out, "  not sent: %s\n", span->why_not_tried);
        return;
    }
    say(out, "  \"%s\" in trace %s\n", DOCTOR_SPAN_NAME, span->trace_id);
    say(out, "  %s: %s\n", span->result == DOCTOR_FINE ? "accepted" : "NOT accepted",
        span->counters);
}

static void print_log(FILE *out)
{
    if (doctor_log_count() == 0)
        return;
    fputs("\nWhat otel-c says in its log\n", out);
    for (size_t i = 0; i < doctor_log_count(); i++)
        say(out, "  %s\n", doctor_log_line(i));
}

void doctor_report_brief(const struct doctor_report *report, FILE *out)
{
    say(out, "%s\n", report->diagnosis->sentence);
}

void doctor_report_text(const struct doctor_report *report, FILE *out)
{
    const struct doctor_record *record = report->record;
    print_settings(report, out);
    print_doubts(report, out);
    if (record->target.url[0] != '\0') {
        print_target(&record->target, out);
        print_connect(record, out);
        print_tls(&record->tls, out);
        print_answer(record, out);
    }
    print_span(&record->span, out);
    print_log(out);
    fputc('\n', out);
    doctor_report_brief(report, out);
}
