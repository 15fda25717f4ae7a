/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/otel-doctor.c - why do my spans not arrive? Says it in one sentence.
 *
 *     otel-doctor                in the environment of the program
 *
 * Looks at the settings, goes the way to the receiver step by step, sends one test span, and makes
 * a diagnosis of what it saw. One thread, beside the exporter's while the span is sent. */
#include "common/log.h"
#include "tools/doctor/connection/doctor_request.h"
#include "tools/doctor/connection/doctor_span.h"
#include "tools/doctor/doctor_report.h"
#include "tools/doctor/findings/doctor_log.h"
#include "tools/doctor/settings/doctor_process.h"
#include "tools/doctor/settings/doctor_settings.h"
#include "tools/doctor/settings/doctor_yaml.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* A receiver that is known not to answer is not waited for as long as a program would. */
enum { SHORT_MS = 500, USAGE = 2 };

static const char usage_text[] =
    "usage: otel-doctor [OPTION]...\n"
    "Find out why spans do not arrive, and say it in one sentence.\n"
    "\n"
    "Run it in the environment of the program. It prints the settings that are not the\n"
    "default, goes the way to the receiver (name, connection, TLS, HTTP, OTLP), sends one span\n"
    "named \"otel-doctor test span\", and ends with what is wrong and what to do. Passwords\n"
    "and the values of headers are not shown.\n"
    "\n"
    "  --config FILE    as OTEL_CONFIG_FILE: the settings are those of this file\n"
    "  --endpoint URL   as OTEL_EXPORTER_OTLP_ENDPOINT, whatever the environment says\n"
    "  --pid PID        what counts in a process that runs, and where that comes from\n"
    "  --no-send        do not send the span (a request without any is sent)\n"
    "  --json           print everything as one line of JSON\n"
    "  --brief          print the last sentence alone\n"
    "  --help           print this\n"
    "  --version        print the version\n"
    "\n"
    "A request takes at most as long as OTEL_EXPORTER_OTLP_TIMEOUT says, and 10 seconds.\n"
    "Exit status: 0 all is well, 1 something is wrong, 2 wrong usage.\n";

struct doctor {
    const char *config_file; /* NULL: the environment */
    const char *endpoint;    /* of the command line, or NULL */
    bool sends;
    enum doctor_form form;

    struct oteli_config config; /* of the environment */
    struct doctor_route route;
    struct doctor_yaml *yaml;
    struct doctor_record record;
};

/* ---- looking -------------------------------------------------------------------------- */

/* False: no memory. */
static bool read_settings(struct doctor *doctor)
{
    struct doctor_record *record = &doctor->record;
    if (record->process.pid != 0)
        return doctor_process_look(record);
    oteli_log_set_level(OTEL_LOG_WARN);
    bool fine;
    if (doctor->config_file != NULL) {
        doctor->yaml = doctor_yaml_load(doctor->config_file, &doctor->route, record);
        fine = doctor->yaml != NULL || record->faults.file[0] != '\0';
    } else {
        fine =
            doctor_settings_load(&doctor->config, doctor->endpoint, record) &&
            doctor_route_from_settings(&doctor->route, &doctor->config, doctor->endpoint, record);
    }
    doctor_settings_find_faults(&record->faults);
    return fine;
}

static const char *why_not_to_send(const struct doctor *doctor)
{
    const struct doctor_record *record = &doctor->record;
    if (record->process.pid != 0)
        return "--pid";
    if (!doctor->sends)
        return "--no-send";
    if (record->faults.disabled_by[0] != '\0')
        return "the SDK is disabled";
    if (record->faults.exporter_is[0] != '\0')
        return "there is no OTLP exporter";
    return doctor->route.is_ready ? NULL : "there is no way to send it";
}

static void send_span(struct doctor *doctor)
{
    struct doctor_record *record = &doctor->record;
    struct doctor_span *span = &record->span;
    span->why_not_tried = why_not_to_send(doctor);
    if (span->why_not_tried != NULL)
        return;
    const size_t lines = doctor_log_count();
    unsigned timeout_ms = record->target.timeout_ms;
    if (record->answer.results[DOCTOR_OTLP] != DOCTOR_FINE && timeout_ms > SHORT_MS)
        timeout_ms = SHORT_MS;
    const otel_status status = doctor->yaml != NULL ? doctor_yaml_start(doctor->yaml, timeout_ms)
                                                    : doctor_span_start(timeout_ms);
    if (status == OTEL_OK) {
        doctor_span_send(timeout_ms, record);
        return;
    }
    span->result = DOCTOR_FAILED;
    snprintf(span->counters, sizeof span->counters, "otel_start says %s",
             otel_status_string(status));
    snprintf(span->words, sizeof span->words, "%s", doctor_log_after(lines));
}

/* The exit status. */
static int examine(struct doctor *doctor)
{
    struct doctor_diagnosis diagnosis;
    bool fine = read_settings(doctor);
    if (fine) {
        if (doctor->route.is_ready)
            doctor_request(&doctor->route, &doctor->record);
        send_span(doctor);
        doctor_diagnose(&doctor->record, &diagnosis);
        fine =
            doctor_report(&doctor->record, &diagnosis, doctor->config_file, doctor->form, stdout);
    }
    if (!fine)
        fputs("otel-doctor: no memory\n", stderr);
    return fine && fflush(stdout) == 0 && diagnosis.is_healthy ? 0 : 1;
}

/* ---- options -------------------------------------------------------------------------- */

/* Put what the command line says into the environment, where everything looks for it. False: the
 * options do not go together. */
static bool take_over(struct doctor *doctor)
{
    const bool has_pid = doctor->record.process.pid != 0;
    if (doctor->config_file == NULL && !has_pid)
        doctor->config_file = oteli_env_get("OTEL_CONFIG_FILE");
    if (doctor->config_file == NULL && !has_pid)
        doctor->config_file = oteli_env_get("OTEL_EXPERIMENTAL_CONFIG_FILE");
    if ((doctor->endpoint != NULL) + (doctor->config_file != NULL) + has_pid > 1) {
        fputs("otel-doctor: of --endpoint, --pid and a configuration file only one can say what "
              "counts\n",
              stderr);
        return false;
    }
    return doctor->endpoint == NULL ||
           (setenv("OTEL_EXPORTER_OTLP_ENDPOINT", doctor->endpoint, 1) == 0 &&
            unsetenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == 0);
}

static bool parse_pid(const char *text, long *pid)
{
    char *end;
    *pid = strtol(text, &end, 10);
    return *end == '\0' && *pid > 0 && *pid <= INT32_MAX;
}

/* Returns the exit status when there is nothing more to do, otherwise -1. */
static int parse_options(struct doctor *doctor, int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"endpoint", required_argument, NULL, 'e'},
                                            {"pid", required_argument, NULL, 'p'},
                                            {"no-send", no_argument, NULL, 'n'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"brief", no_argument, NULL, 'b'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    doctor->sends = true;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'c')
            doctor->config_file = optarg;
        else if (option == 'e')
            doctor->endpoint = optarg;
        else if (option == 'n')
            doctor->sends = false;
        else if (option == 'j' || option == 'b')
            doctor->form = option == 'j' ? DOCTOR_FORM_JSON : DOCTOR_FORM_BRIEF;
        else if (option == 'h')
            return fputs(usage_text, stdout) < 0;
        else if (option == 'v')
            return printf("otel-doctor %s\n", OTEL_VERSION) < 0;
        else if (option != 'p')
            return USAGE; /* getopt_long has said why */
        else if (!parse_pid(optarg, &doctor->record.process.pid)) {
            fputs("otel-doctor: --pid wants the number of a process\n", stderr);
            return USAGE;
        }
    }
    if (optind < argc) {
        fputs("otel-doctor: there are no arguments but options\n", stderr);
        return USAGE;
    }
    return take_over(doctor) ? -1 : USAGE;
}

int main(int argc, char **argv)
{
    static struct doctor doctor;
    const int early = parse_options(&doctor, argc, argv);
    if (early >= 0)
        return early;
    signal(SIGPIPE, SIG_IGN);
    doctor_log_begin();
    const int status = examine(&doctor);
    doctor_route_fini(&doctor.route);
    doctor_yaml_free(doctor.yaml);
    oteli_config_fini(&doctor.config);
    return status;
}
