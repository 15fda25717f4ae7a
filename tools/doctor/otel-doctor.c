/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/otel-doctor.c - why do my spans not arrive? Says it in one sentence.
 *
 *     otel-doctor                in the environment of the program
 *
 * Looks at the settings, goes the way to the receiver step by step, sends one test span, and makes
 * a diagnosis of what it saw. One thread, beside the exporter's while the span is sent. */
#include "common/log.h"
#include "tools/doctor/connection/doctor_connect.h"
#include "tools/doctor/connection/doctor_request.h"
#include "tools/doctor/connection/doctor_span.h"
#include "tools/doctor/doctor_log.h"
#include "tools/doctor/doctor_process.h"
#include "tools/doctor/doctor_report.h"
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
    "Run it in the environment of the program. It prints the settings and where each comes\n"
    "from, goes the way to the receiver (name, connection, TLS, HTTP, OTLP), sends one span\n"
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
    "Each step takes at most as long as OTEL_EXPORTER_OTLP_TIMEOUT says, and 10 seconds.\n"
    "Exit status: 0 all is well, 1 something is wrong, 2 wrong usage.\n";

struct doctor {
    const char *config_file; /* NULL: the environment */
    const char *endpoint;    /* of the command line, or NULL */
    long pid;                /* look into this process alone; 0: none */
    bool sends;
    bool json;
    bool brief;

    struct doctor_settings settings;
    struct doctor_route route;
    struct doctor_yaml *yaml;
    struct doctor_record record;
};

/* ---- looking -------------------------------------------------------------------------- */

static bool read_settings(struct doctor *doctor)
{
    if (doctor->pid != 0) {
        doctor->record.process.pid = doctor->pid;
        return doctor_process_look(&doctor->settings, &doctor->record);
    }
    if (doctor->config_file != NULL) {
        oteli_log_set_level(OTEL_LOG_WARN);
        doctor->yaml = doctor_yaml_load(doctor->config_file, &doctor->settings, &doctor->route,
                                        &doctor->record);
        return doctor->yaml != NULL || doctor->record.settings.file_fault[0] != '\0';
    }
    if (!doctor_settings_load(&doctor->settings, doctor->endpoint))
        return false;
    doctor_log_clear(); /* it said what the settings say themselves */
    doctor_settings_examine(&doctor->settings, &doctor->record.settings);
    oteli_log_set_level(OTEL_LOG_WARN);
    return doctor_route_from_settings(&doctor->route, &doctor->settings, &doctor->record);
}

static void go_the_way(struct doctor *doctor)
{
    struct doctor_peer peer;
    doctor_connect(&doctor->record, &peer);
    if (doctor->record.connect.result == DOCTOR_FINE)
        doctor_request(&doctor->route, &peer, &doctor->record);
}

static const char *why_not_to_send(const struct doctor *doctor)
{
    const struct doctor_settings_seen *seen = &doctor->record.settings;
    if (doctor->pid != 0)
        return "--pid";
    if (!doctor->sends)
        return "--no-send";
    if (seen->disabled_by[0] != '\0')
        return "the SDK is disabled";
    if (seen->exporter_is[0] != '\0')
        return "there is no OTLP exporter";
    return doctor->route.is_ready ? NULL : "there is no way to send it";
}

static void send_span(struct doctor *doctor)
{
    struct doctor_record *record = &doctor->record;
    struct doctor_span *span = &record->span;
    const char *reason = why_not_to_send(doctor);
    if (reason != NULL) {
        snprintf(span->why_not_tried, sizeof span->why_not_tried, "%s", reason);
        return;
    }
    unsigned timeout_ms = record->target.timeout_ms;
    if (record->otlp.result != DOCTOR_FINE && timeout_ms > SHORT_MS)
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
    snprintf(span->words, sizeof span->words, "%s", doctor_log_last());
}

/* The exit status. */
static int examine(struct doctor *doctor)
{
    bool fine = read_settings(doctor);
    if (doctor->pid == 0)
        fine = fine && doctor_settings_find_slips(&doctor->settings, &doctor->record.settings);
    if (!fine) {
        fprintf(stderr, "otel-doctor: no memory\n");
        return 1;
    }
    if (doctor->route.is_ready)
        go_the_way(doctor);
    send_span(doctor);
    struct doctor_diagnosis diagnosis;
    doctor_diagnose(&doctor->record, &diagnosis);
    const struct doctor_report report = {.config_file = doctor->config_file,
                                         .pid = doctor->pid,
                                         .settings = &doctor->settings,
                                         .record = &doctor->record,
                                         .diagnosis = &diagnosis};
    if (doctor->json)
        fine = doctor_report_json(&report, stdout);
    else if (doctor->brief)
        doctor_report_brief(&report, stdout);
    else
        doctor_report_text(&report, stdout);
    fine = fflush(stdout) == 0 && fine;
    return fine && diagnosis.is_healthy ? 0 : 1;
}

/* ---- options -------------------------------------------------------------------------- */

/* Put what the command line says into the environment, where everything looks for it. */
static bool take_over(struct doctor *doctor)
{
    if (doctor->endpoint != NULL &&
        (setenv("OTEL_EXPORTER_OTLP_ENDPOINT", doctor->endpoint, 1) != 0 ||
         unsetenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != 0))
        return false;
    if (doctor->pid != 0 && (doctor->config_file != NULL || doctor->endpoint != NULL)) {
        fputs("otel-doctor: what counts in a process is what it says: --config and --endpoint have "
              "no place with --pid\n",
              stderr);
        return false;
    }
    if (doctor->pid != 0)
        return true;
    if (doctor->config_file == NULL)
        doctor->config_file = oteli_env_get("OTEL_CONFIG_FILE");
    if (doctor->config_file == NULL)
        doctor->config_file = oteli_env_get("OTEL_EXPERIMENTAL_CONFIG_FILE");
    if (doctor->config_file != NULL && doctor->endpoint != NULL) {
        fputs("otel-doctor: with a configuration file the endpoint is what that says: --endpoint "
              "has no place\n",
              stderr);
        return false;
    }
    return true;
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
        switch (option) {
        case 'c':
            doctor->config_file = optarg;
            break;
        case 'e':
            doctor->endpoint = optarg;
            break;
        case 'p':
            if (!parse_pid(optarg, &doctor->pid)) {
                fputs("otel-doctor: --pid wants the number of a process\n", stderr);
                return USAGE;
            }
            break;
        case 'n':
            doctor->sends = false;
            break;
        case 'j':
            doctor->json = true;
            break;
        case 'b':
            doctor->brief = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return 0;
        case 'v':
            printf("otel-doctor %s\n", OTEL_VERSION);
            return 0;
        default:
            return USAGE; /* getopt_long has said why */
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
    doctor_settings_fini(&doctor.settings);
    return status;
}
