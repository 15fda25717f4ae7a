/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/findings/doctor_findings.h - what otel-doctor has seen, step by step. Plain
 * data, one thread:
 *
 *     settings ─▶ target ─▶ a request without spans ─▶ the test span
 *
 * The diagnosis is made from it alone (doctor_diagnosis.h), and the report shows it
 * (doctor_report.h). Texts are "" where there is nothing to say, and are cut where they are too
 * long. Nothing in it is a secret. */
#ifndef DOCTOR_FINDINGS_H
#define DOCTOR_FINDINGS_H

#include <otel/otlp.h>
#include <otel/sdk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DOCTOR_SHORT = 96, /* bytes of a name, a number, a header */
    DOCTOR_TEXT = 1024 /* of a sentence, a URL, a path */
};

enum doctor_result { DOCTOR_NOT_TRIED, DOCTOR_FINE, DOCTOR_FAILED };

/* --- Settings that are not the default, and what is wrong with them. --- */
enum { DOCTOR_SETTINGS = 128, DOCTOR_TYPOS = 8 };

struct doctor_setting {
    char name[DOCTOR_SHORT];
    char value[256];         /* without secrets */
    char from[DOCTOR_SHORT]; /* "environment", "code", … (oteli_config_tell), "--endpoint" */
};

/* A variable that no program reads, and the one that it looks like. */
struct doctor_typo {
    char name[DOCTOR_SHORT];
    const char *meant; /* static */
};

struct doctor_faults {
    char file[DOCTOR_TEXT];        /* the configuration file cannot be used: why */
    char disabled_by[DOCTOR_TEXT]; /* OTEL_SDK_DISABLED=true, or what a file says */
    char exporter_is[DOCTOR_TEXT]; /* no exporter is OTLP: what says so */
    char sampler_is[DOCTOR_TEXT];  /* it drops everything: what says so */
    char exporting[DOCTOR_TEXT];   /* a bad value that decides where and how spans are sent */
    char headers[DOCTOR_TEXT];     /* a header that is left out */
    char other[DOCTOR_TEXT];       /* a bad value of another kind */
    struct doctor_typo typos[DOCTOR_TYPOS];
    size_t typo_count;
};

/* --- A process that runs, with --pid: that is looked at in the place of all else. --- */
enum doctor_process_state {
    DOCTOR_PROCESS_NOT_ASKED,
    DOCTOR_PROCESS_SPEAKS,
    DOCTOR_PROCESS_SILENT,   /* it publishes nothing */
    DOCTOR_PROCESS_ABSENT,   /* there is none */
    DOCTOR_PROCESS_FORBIDDEN /* the kernel does not let us look */
};

struct doctor_process {
    enum doctor_process_state state;
    long pid;
    char words[DOCTOR_SHORT];  /* what the kernel says */
    char message[DOCTOR_TEXT]; /* of its start: where spans go, by which sampler */
};

/* --- Where spans go. --- */
struct doctor_target {
    otel_otlp_protocol protocol;
    char protocol_from[DOCTOR_SHORT]; /* the name of the setting */
    char url[DOCTOR_TEXT];            /* without secrets */
    char url_from[DOCTOR_SHORT];      /* the name of the setting */
    bool url_is_whole;                /* it is used as it is: nothing is put behind it */
    bool url_is_default;              /* no setting gives one */
    bool is_tls;
    char host[256];
    unsigned port;
    char path[DOCTOR_TEXT];
    char unix_path[108];     /* "" for a host */
    char proxy[DOCTOR_TEXT]; /* without secrets; "": none is used */
    char proxy_from[DOCTOR_SHORT];
    unsigned timeout_ms;            /* of each request */
    char tls_setting[DOCTOR_SHORT]; /* NAME=VALUE, which leaves out versions of TLS; "": none */
    bool has_certificate;           /* of the client */
    char headers[DOCTOR_SHORT];     /* names of headers that the settings add; "": none */
};

/* --- What came of a request without spans. --- */
enum doctor_step {
    DOCTOR_NAME,    /* both: of the proxy, where one is used */
    DOCTOR_CONNECT, /* to one of its addresses */
    DOCTOR_TLS,
    DOCTOR_HTTP, /* fine: an answer came, whatever it says */
    DOCTOR_OTLP, /* fine: the answer is that of a receiver that takes spans */
    DOCTOR_STEPS
};

struct doctor_answer {
    enum doctor_result results[DOCTOR_STEPS];
    bool timed_out;
    bool stops_at_proxy; /* no answer: the request got no further than the proxy */
    int proxy_status;    /* of its answer to CONNECT; 0: none */
    int connect_error;   /* errno of the connection that failed; 0: not known */
    bool is_tls_file;    /* no answer: a file that TLS needs cannot be used */
    bool hears_tls;      /* messages of TLS came */
    bool wants_certificate;
    char problem[256]; /* no answer: why, in libcurl's words */

    char addresses[256]; /* that were tried */
    char tls_version[DOCTOR_SHORT];
    char version[8]; /* of HTTP */
    int status;
    int grpc_status; /* -1: none came */
    char content_type[DOCTOR_SHORT];
    char server[DOCTOR_SHORT];
    char location[DOCTOR_TEXT];
    char message[256]; /* what the receiver says for itself */
    bool is_html;
};

/* What works in the place of what the settings say. */
enum doctor_instead {
    DOCTOR_INSTEAD_NOTHING,
    DOCTOR_INSTEAD_TLS,
    DOCTOR_INSTEAD_PLAIN, /* without TLS */
    DOCTOR_INSTEAD_GRPC,
    DOCTOR_INSTEAD_HTTP,
    DOCTOR_INSTEAD_PORT, /* the other one of OTLP */
    DOCTOR_INSTEAD_PATH  /* /v1/traces */
};

/* --- The test span. --- */
struct doctor_span {
    enum doctor_result result; /* DOCTOR_FINE: it was accepted */
    const char *why_not_tried; /* static */
    char trace_id[33];
    otel_stats stats;
    char counters[256];      /* as otel_stats_describe has them */
    char words[DOCTOR_TEXT]; /* the last line of the log about it */
};

struct doctor_record {
    struct doctor_setting settings[DOCTOR_SETTINGS];
    size_t setting_count;
    struct doctor_faults faults;
    struct doctor_process process;
    struct doctor_target target;
    struct doctor_answer answer;
    enum doctor_instead instead;
    struct doctor_span span;
};

#endif
