/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_findings.h - what otel-doctor has seen, step by step. Plain data, one thread:
 *
 *     settings ─▶ target ─▶ name ─▶ connect ─▶ TLS ─▶ HTTP ─▶ OTLP ─▶ test span
 *
 * The probes fill it in (tools/doctor/doctor_*.c), the diagnosis is made from it alone
 * (doctor_diagnosis.h), and the report shows it (doctor_report.h). Texts are "" where there is
 * nothing to say, and are cut where they are too long. Nothing in it is a secret. */
#ifndef DOCTOR_RECORD_H
#define DOCTOR_RECORD_H

#include <otel/otlp.h>
#include <otel/sdk.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DOCTOR_ADDRESSES = 8,
    DOCTOR_SHORT = 96, /* bytes of a name, a number, a header */
    DOCTOR_TEXT = 1024 /* of a sentence, a URL, a path */
};

enum doctor_result { DOCTOR_NOT_TRIED, DOCTOR_FINE, DOCTOR_FAILED };

/* --- Settings: what can be wrong before anything is sent. --- */
struct doctor_settings_seen {
    char file_fault[DOCTOR_TEXT];     /* the configuration file cannot be used: why */
    char disabled_by[DOCTOR_TEXT];    /* OTEL_SDK_DISABLED=true, or what a file says */
    char exporter_is[DOCTOR_TEXT];    /* no exporter is OTLP: what says so */
    bool exporter_is_none;            /* ... and there is none at all */
    char sampler_is[DOCTOR_TEXT];     /* it drops everything: what says so */
    char url_fault[DOCTOR_TEXT];      /* the endpoint is no URL: NAME="..." */
    char url_hint[DOCTOR_TEXT];       /* ... and what it should be */
    char tls_file_fault[DOCTOR_TEXT]; /* of a file that counts: NAME: PATH is not there */
    char export_fault[DOCTOR_TEXT];   /* a bad value that decides how we export */
    char other_fault[DOCTOR_TEXT];    /* a bad value of another kind */
    char header_fault[DOCTOR_TEXT];   /* a header list with an entry that is left out */
    char slip[DOCTOR_SHORT];          /* a variable that nobody reads ... */
    char meant[DOCTOR_SHORT];         /* ... and the one that it looks like */
    bool slip_is_export;              /* ... which decides how we export */
};

/* A file for TLS that a setting names. */
struct doctor_file {
    char name[DOCTOR_SHORT]; /* of the setting */
    char path[256];
    char state[256]; /* "a certificate for shop, until 2027-01-01", "is not there" */
    bool is_bad;
};
enum { DOCTOR_FILES = 3 };

/* --- A process that runs, with --pid: that is looked at in the place of all else. --- */
enum doctor_process_state {
    DOCTOR_PROCESS_NOT_ASKED,
    DOCTOR_PROCESS_SPEAKS,
    DOCTOR_PROCESS_SILENT,     /* it publishes nothing */
    DOCTOR_PROCESS_ABSENT,     /* there is none */
    DOCTOR_PROCESS_HIDDEN,     /* there is, but /proc does not show it */
    DOCTOR_PROCESS_OF_ANOTHER, /* user */
    DOCTOR_PROCESS_UNDUMPABLE,
    DOCTOR_PROCESS_FORBIDDEN /* by another rule */
};

struct doctor_process {
    enum doctor_process_state state;
    long pid;
    unsigned user;             /* that it belongs to */
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
    bool url_is_default;              /* nobody has said one */
    bool is_tls;
    char host[256];
    unsigned port;
    char path[DOCTOR_TEXT];
    char unix_path[108];     /* "" for a host */
    char proxy[DOCTOR_TEXT]; /* without secrets; "": none is used */
    char proxy_from[DOCTOR_SHORT];
    char proxy_host[256];
    unsigned proxy_port;
    unsigned timeout_ms;            /* of each step */
    char tls_setting[DOCTOR_SHORT]; /* NAME=VALUE, which leaves out versions of TLS; "": none */
};

/* --- Name and connect: of the proxy, where one is used. --- */
struct doctor_name {
    enum doctor_result result;
    bool no_server;             /* it may exist: no name server said so */
    char problem[DOCTOR_SHORT]; /* in words of the C library */
};

struct doctor_address {
    char text[112];
    int error; /* errno; 0: somebody took the connection */
    unsigned ms;
};

struct doctor_connect {
    enum doctor_result result; /* one address that works is enough */
    struct doctor_address addresses[DOCTOR_ADDRESSES];
    size_t count;
    int error;           /* of the address that tells most */
    unsigned other_port; /* of OTLP, where somebody does listen; 0: none */
};

/* --- What speaks there, by its first bytes. --- */
enum doctor_speech {
    DOCTOR_SPEECH_UNKNOWN, /* not asked, or it says nothing that we know */
    DOCTOR_SPEECH_HTTP1,
    DOCTOR_SPEECH_HTTP2, /* and not HTTP/1 */
    DOCTOR_SPEECH_TLS,
    DOCTOR_SPEECH_HTTP2_IN_TLS
};

/* --- TLS. --- */
enum doctor_tls_problem {
    DOCTOR_TLS_NONE,
    DOCTOR_TLS_UNKNOWN_CA,
    DOCTOR_TLS_SELF_SIGNED,
    DOCTOR_TLS_EXPIRED,
    DOCTOR_TLS_NOT_YET_VALID,
    DOCTOR_TLS_WRONG_HOST,
    DOCTOR_TLS_VERSION,
    DOCTOR_TLS_WANTS_CERTIFICATE,   /* the server does, and there is none */
    DOCTOR_TLS_REFUSES_CERTIFICATE, /* the server does not like ours */
    DOCTOR_TLS_NOT_TLS,
    DOCTOR_TLS_NO_HTTP1, /* the server speaks TLS, but inside of it nothing that we offer */
    DOCTOR_TLS_FILES,    /* ours cannot be used */
    DOCTOR_TLS_OTHER
};

struct doctor_tls {
    enum doctor_result result;
    enum doctor_tls_problem problem;
    char version[DOCTOR_SHORT]; /* TLSv1.3 */
    char issuer[256];           /* of the server's certificate */
    char names[256];            /* whom it is for */
    char not_after[DOCTOR_SHORT];
    char words[256]; /* what the TLS library says */
    bool wants_certificate;
    bool has_certificate; /* we have one to show */
};

/* --- HTTP, and what it carries. --- */
struct doctor_http {
    enum doctor_result result; /* DOCTOR_FINE: an answer came, whatever it says */
    bool timed_out;
    bool proxy_refused; /* CONNECT; the status is the proxy's */
    int status;
    char version[8];
    char content_type[DOCTOR_SHORT];
    char server[DOCTOR_SHORT];
    char location[DOCTOR_TEXT];
    char wants_authentication[DOCTOR_SHORT]; /* WWW-Authenticate, its scheme */
    char words[256]; /* what the receiver says, or the transport without an answer */
    bool is_html;
    int status_elsewhere; /* of /v1/traces on the same host, where the path is another; 0: not
                             asked */
    enum doctor_speech speech;
};

struct doctor_otlp {
    enum doctor_result result;
    int grpc_status; /* -1: none came */
    uint64_t rejected;
    char words[256]; /* its message */
};

/* --- The test span. --- */
struct doctor_span {
    enum doctor_result result; /* DOCTOR_FINE: it was accepted */
    char why_not_tried[DOCTOR_SHORT];
    char trace_id[33];
    otel_stats stats;
    char counters[256];      /* as otel_stats_describe has them */
    char words[DOCTOR_TEXT]; /* the last line of the log about it */
};

struct doctor_record {
    struct doctor_settings_seen settings;
    struct doctor_file files[DOCTOR_FILES];
    size_t file_count;
    struct doctor_target target;
    struct doctor_name name;
    struct doctor_connect connect;
    struct doctor_tls tls;
    struct doctor_http http;
    struct doctor_otlp otlp;
    struct doctor_span span;
    struct doctor_process process;
};

#endif
