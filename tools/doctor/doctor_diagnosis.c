/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_diagnosis.c - the contract is in tools/doctor/doctor_diagnosis.h.
 *
 * A rule has a condition and a sentence with {places} that are filled in from the record. They
 * stand in the order in which things can go wrong, a cause before its consequences: settings that
 * keep everything in, settings that lead astray, files, name, connection, proxy, TLS, HTTP, OTLP,
 * the span; at the end what is wrong without having done harm. */
#include "tools/doctor/doctor_diagnosis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef bool condition(const struct doctor_record *record);

#define WHEN(name, expression)                      \
    static bool name(const struct doctor_record *r) \
    {                                               \
        return expression;                          \
    }

/* ---- settings ------------------------------------------------------------------------- */

static bool got_through(const struct doctor_record *r)
{
    return r->otlp.result == DOCTOR_FINE || r->span.result == DOCTOR_FINE;
}

WHEN(file_is_unusable, r->settings.file_fault[0] != '\0')
WHEN(is_disabled, r->settings.disabled_by[0] != '\0')
WHEN(has_no_exporter, r->settings.exporter_is_none)
WHEN(has_other_exporter, r->settings.exporter_is[0] != '\0')
WHEN(samples_nothing, r->settings.sampler_is[0] != '\0')
WHEN(url_is_none, r->settings.url_fault[0] != '\0')
WHEN(export_value_is_bad, r->settings.export_fault[0] != '\0')
WHEN(slip_leads_astray, r->settings.slip_is_export && !got_through(r))
WHEN(tls_file_is_bad, r->target.is_tls && r->settings.tls_file_fault[0] != '\0')
WHEN(header_is_bad, r->settings.header_fault[0] != '\0')
WHEN(other_slip, r->settings.slip[0] != '\0')
WHEN(other_value_is_bad, r->settings.other_fault[0] != '\0')

static bool is_process(const struct doctor_record *r, enum doctor_process_state state)
{
    return r->process.state == state;
}

static bool process_says(const struct doctor_record *r, const char *phrase)
{
    return is_process(r, DOCTOR_PROCESS_SPEAKS) && strstr(r->process.message, phrase) != NULL;
}

WHEN(process_speaks, is_process(r, DOCTOR_PROCESS_SPEAKS))
WHEN(process_records_nothing, process_says(r, "no span is recorded"))
WHEN(process_has_no_exporter, process_says(r, "spans go nowhere"))
WHEN(process_samples_nothing, process_says(r, "; sampler always_off") ||
                                  process_says(r, "; sampler parentbased_always_off") ||
                                  process_says(r, "; sampler AlwaysOffSampler"))
WHEN(process_is_silent, is_process(r, DOCTOR_PROCESS_SILENT))
WHEN(process_is_absent, is_process(r, DOCTOR_PROCESS_ABSENT))
WHEN(process_is_hidden, is_process(r, DOCTOR_PROCESS_HIDDEN))
WHEN(process_is_anothers, is_process(r, DOCTOR_PROCESS_OF_ANOTHER))
WHEN(process_is_undumpable, is_process(r, DOCTOR_PROCESS_UNDUMPABLE))
WHEN(process_is_forbidden, is_process(r, DOCTOR_PROCESS_FORBIDDEN))

/* ---- name, connect, proxy ------------------------------------------------------------- */

static bool uses_proxy(const struct doctor_record *r)
{
    return r->target.proxy[0] != '\0';
}

static bool is_unix(const struct doctor_record *r)
{
    return r->target.unix_path[0] != '\0';
}

static bool cannot_connect(const struct doctor_record *r)
{
    return r->connect.result == DOCTOR_FAILED;
}

WHEN(proxy_has_no_name, uses_proxy(r) && r->name.result == DOCTOR_FAILED)
WHEN(proxy_is_dead, uses_proxy(r) && cannot_connect(r))
WHEN(proxy_wants_password, r->http.proxy_refused && r->http.status == 407)
WHEN(proxy_refuses, r->http.proxy_refused)
WHEN(name_server_is_silent, r->name.result == DOCTOR_FAILED && r->name.no_server)
WHEN(has_no_name, r->name.result == DOCTOR_FAILED)
WHEN(socket_is_missing, is_unix(r) && cannot_connect(r) && r->connect.error == ENOENT)
WHEN(socket_is_denied, is_unix(r) && cannot_connect(r) && r->connect.error == EACCES)
WHEN(socket_is_dead, is_unix(r) && cannot_connect(r))
WHEN(other_port_listens, cannot_connect(r) && r->connect.other_port != 0)
WHEN(is_refused, cannot_connect(r) && r->connect.error == ECONNREFUSED)
WHEN(connect_is_silent, cannot_connect(r) && r->connect.error == ETIMEDOUT)
WHEN(connect_fails, cannot_connect(r))

/* ---- TLS ------------------------------------------------------------------------------ */

static bool tls_fails(const struct doctor_record *r, enum doctor_tls_problem problem)
{
    return r->tls.result == DOCTOR_FAILED && r->tls.problem == problem;
}

WHEN(is_plain_http,
     r->target.is_tls && r->http.result == DOCTOR_FAILED &&
         (r->http.speech == DOCTOR_SPEECH_HTTP1 || r->http.speech == DOCTOR_SPEECH_HTTP2))
WHEN(tls_is_not_tls, tls_fails(r, DOCTOR_TLS_NOT_TLS))
WHEN(tls_unknown_ca, tls_fails(r, DOCTOR_TLS_UNKNOWN_CA))
WHEN(tls_self_signed, tls_fails(r, DOCTOR_TLS_SELF_SIGNED))
WHEN(tls_expired, tls_fails(r, DOCTOR_TLS_EXPIRED))
WHEN(tls_not_yet, tls_fails(r, DOCTOR_TLS_NOT_YET_VALID))
WHEN(tls_wrong_host, tls_fails(r, DOCTOR_TLS_WRONG_HOST))
WHEN(tls_version_setting,
     tls_fails(r, DOCTOR_TLS_VERSION) && r->target.tls_setting[0] != '\0' &&
         (r->http.speech == DOCTOR_SPEECH_TLS || r->http.speech == DOCTOR_SPEECH_HTTP2_IN_TLS))
WHEN(tls_version, tls_fails(r, DOCTOR_TLS_VERSION))
WHEN(tls_wants, tls_fails(r, DOCTOR_TLS_WANTS_CERTIFICATE))
WHEN(tls_refuses, tls_fails(r, DOCTOR_TLS_REFUSES_CERTIFICATE))
WHEN(tls_is_grpc, r->target.protocol != DOCTOR_GRPC && tls_fails(r, DOCTOR_TLS_NO_HTTP1))
WHEN(tls_files, tls_fails(r, DOCTOR_TLS_FILES))
WHEN(tls_other, r->tls.result == DOCTOR_FAILED)

/* ---- what speaks there ---------------------------------------------------------------- */

WHEN(wants_tls, !r->target.is_tls && (r->http.speech == DOCTOR_SPEECH_TLS ||
                                      r->http.speech == DOCTOR_SPEECH_HTTP2_IN_TLS))
WHEN(is_grpc_port, r->target.protocol != DOCTOR_GRPC && r->http.result == DOCTOR_FAILED &&
                       (r->http.speech == DOCTOR_SPEECH_HTTP2 ||
                        (r->target.is_tls && r->http.speech == DOCTOR_SPEECH_HTTP2_IN_TLS)))

/* A server of HTTP says no to gRPC's path or media type, and has no grpc-status. */
static bool is_http_port(const struct doctor_record *r)
{
    if (r->target.protocol != DOCTOR_GRPC)
        return false;
    if (r->http.result == DOCTOR_FAILED)
        return r->http.speech == DOCTOR_SPEECH_HTTP1 || r->http.version[0] == '1';
    const int status = r->http.status;
    const bool says_no = status == 404 || status == 405 || status == 415;
    return strcmp(r->http.version, "2") != 0 || (says_no && r->otlp.grpc_status < 0);
}

WHEN(never_answers, r->http.timed_out)
WHEN(answers_nothing, r->http.result == DOCTOR_FAILED)

/* ---- HTTP ----------------------------------------------------------------------------- */

static bool has_status(const struct doctor_record *r, int status)
{
    return r->http.result == DOCTOR_FINE && r->http.status == status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

WHEN(redirects, r->http.result == DOCTOR_FINE && r->http.status / 100 == 3)
WHEN(is_401, has_status(r, 401))
WHEN(is_403, has_status(r, 403))
WHEN(path_is_double, has_status(r, 404) && ends_with(r->target.path, "/v1/traces/v1/traces"))
WHEN(path_is_elsewhere, has_status(r, 404) && r->http.status_elsewhere == 200)
WHEN(is_404, has_status(r, 404))
WHEN(is_405, has_status(r, 405) || has_status(r, 501))
WHEN(is_415, has_status(r, 415))
WHEN(is_413, has_status(r, 413))
WHEN(is_429, has_status(r, 429))
WHEN(is_bad_gateway, has_status(r, 502) || has_status(r, 504))
WHEN(is_503, has_status(r, 503))
WHEN(is_5xx, r->http.result == DOCTOR_FINE && r->http.status >= 500)
WHEN(is_4xx, r->http.result == DOCTOR_FINE && r->http.status >= 400)
WHEN(is_html, r->http.result == DOCTOR_FINE && r->otlp.result == DOCTOR_FAILED && r->http.is_html)

/* ---- OTLP and the span ---------------------------------------------------------------- */

static bool has_grpc(const struct doctor_record *r, int status)
{
    return r->target.protocol == DOCTOR_GRPC && r->http.result == DOCTOR_FINE &&
           r->otlp.grpc_status == status;
}

WHEN(grpc_unimplemented, has_grpc(r, 12))
WHEN(grpc_denied, has_grpc(r, 16) || has_grpc(r, 7))
WHEN(grpc_away, has_grpc(r, 14))
WHEN(grpc_silent, r->target.protocol == DOCTOR_GRPC && r->otlp.result == DOCTOR_FAILED &&
                      r->otlp.grpc_status < 0)
WHEN(grpc_fails, r->target.protocol == DOCTOR_GRPC && r->otlp.result == DOCTOR_FAILED)
WHEN(is_not_otlp, r->otlp.result == DOCTOR_FAILED && !r->http.is_html)
WHEN(is_rejected, r->span.stats.rejected != 0)
WHEN(span_is_lost, r->span.result == DOCTOR_FAILED)
WHEN(is_accepted, r->span.result == DOCTOR_FINE)
WHEN(is_unsent, r->otlp.result == DOCTOR_FINE)
WHEN(always, r != NULL)

/* ---- the table ------------------------------------------------------------------------ */

#define CORRECT_URL "{correct} {url_from}"

struct rule {
    const char *name;
    condition *holds;
    const char *sentence;
    bool is_healthy;
};

#define IN_PROCESS "In process {pid} {process_message}."

/* What keeps spans in the program, or sends them astray. */
static const struct rule settings_rules[] = {
    {"process.absent", process_is_absent,
     "There is no process {pid}: take its number as otel-doctor sees it, in the same container.",
     false},
    {"process.hidden", process_is_hidden,
     "Process {pid} is hidden from this user, because /proc is mounted with hidepid: run "
     "otel-doctor as root.",
     false},
    {"process.user", process_is_anothers,
     "Process {pid} belongs to user {user}, and the kernel lets only that user and root look into "
     "it: run otel-doctor as one of them.",
     false},
    {"process.dumpable", process_is_undumpable,
     "Process {pid} has dropped privileges or is not dumpable for another reason "
     "(PR_SET_DUMPABLE), and the kernel lets only root look into it then: run otel-doctor as root.",
     false},
    {"process.forbidden", process_is_forbidden,
     "The kernel does not let otel-doctor look into process {pid} ({process_words}): give it "
     "CAP_SYS_PTRACE in the name space of that process.",
     false},
    {"process.silent", process_is_silent,
     "Process {pid} says nothing about otel-c: it has not called otel_start or has called "
     "otel_shutdown, OTEL_C_THREAD_CONTEXT=off keeps it from saying anything, or a filter of system "
     "calls forbids it memfd_create.",
     false},
    {"process.disabled", process_records_nothing, IN_PROCESS, false},
    {"process.exporter_none", process_has_no_exporter, IN_PROCESS, false},
    {"process.sampler_off", process_samples_nothing, IN_PROCESS, false},
    {"process.exports", process_speaks, IN_PROCESS, true},
    {"config.file", file_is_unusable,
     "The configuration file cannot be used, so nothing is started: {file_fault}.", false},
    {"settings.disabled", is_disabled,
     "Nothing is recorded because of {disabled_by}: take that away to send spans.", false},
    {"settings.exporter_none", has_no_exporter,
     "No span leaves the program because of {exporter_is}: take that away, or set it to otlp.",
     false},
    {"settings.exporter_other", has_other_exporter,
     "No span is sent to a receiver because {exporter_is} does not name otlp: add it there.",
     false},
    {"settings.sampler_off", samples_nothing,
     "No span is recorded because of {sampler_is}, which drops every trace: take that away.",
     false},
    {"settings.url", url_is_none,
     "{url_fault} is no URL that can be used, and the default stands in for it: {url_hint}.",
     false},
    {"settings.export", export_value_is_bad, "A setting does not count: {export_fault}.", false},
    {"settings.slip_export", slip_leads_astray,
     "Nobody reads the variable {slip}, which is probably meant to be {meant}: rename it.", false},
    {"tls.file", tls_file_is_bad, "A file that TLS needs cannot be used: {tls_file_fault}.", false},
};

/* What is wrong on the way. The exporter has the last word: what it got through is no obstacle. */
static const struct rule way_rules[] = {
    {"proxy.name", proxy_has_no_name,
     "The proxy {proxy}, which {proxy_from} names, has a host that cannot be found "
     "({name_problem}): correct {proxy_from}, or put {host} into no_proxy.",
     false},
    {"proxy.connect", proxy_is_dead,
     "The proxy {proxy}, which {proxy_from} names, cannot be reached ({connect_error}): start it, "
     "or put {host} into no_proxy.",
     false},
    {"name.server", name_server_is_silent,
     "The name {host} could not be looked up because no name server answered ({name_problem}): "
     "look at the network and at resolv.conf.",
     false},
    {"name.unknown", has_no_name,
     "There is no host with the name {host} ({name_problem}): " CORRECT_URL ".", false},
    {"connect.socket_missing", socket_is_missing,
     "There is no socket {unix_path}: start the receiver, or " CORRECT_URL ".", false},
    {"connect.socket_denied", socket_is_denied,
     "This user may not write to the socket {unix_path}: change its permissions.", false},
    {"connect.socket_dead", socket_is_dead,
     "Nobody listens on the socket {unix_path} ({connect_error}): start the receiver, or " CORRECT_URL
     ".",
     false},
    {"connect.other_port", other_port_listens,
     "Nobody listens on port {port} of {host}, but somebody does on port {other_port}: use that one "
     "with the protocol that belongs to it (4318 is http/protobuf, 4317 is grpc).",
     false},
    {"connect.refused", is_refused,
     "Nobody listens on port {port} of {host} (connection refused): start the receiver there, or " CORRECT_URL
     ".",
     false},
    {"connect.silent", connect_is_silent,
     "Port {port} of {host} does not answer (connection timed out): the host is down, or a firewall "
     "is between it and this machine.",
     false},
    {"connect.failed", connect_fails,
     "Port {port} of {host} cannot be reached ({connect_error}): look at the network, or " CORRECT_URL
     ".",
     false},

    {"proxy.password", proxy_wants_password,
     "The proxy {proxy} wants a user and a password (status 407): put them into {proxy_from} as "
     "http://user:password@host:port.",
     false},
    {"proxy.refused", proxy_refuses,
     "The proxy {proxy} does not connect to {host} (status {status}): ask who runs it, or put "
     "{host} into no_proxy.",
     false},

    {"tls.plain", is_plain_http,
     "The server at {url} speaks plain HTTP and not TLS: write http:// instead of https:// in "
     "{url_from}, or use its port for TLS.",
     false},
    {"tls.not_tls", tls_is_not_tls,
     "What answers at {url} is not TLS: write http:// instead of https:// in {url_from}, or use its "
     "port for TLS.",
     false},
    {"tls.unknown_ca", tls_unknown_ca,
     "The server's certificate is from a CA that is not trusted here ({issuer}): name that CA's "
     "file in OTEL_EXPORTER_OTLP_CERTIFICATE.",
     false},
    {"tls.self_signed", tls_self_signed,
     "The server's certificate is signed by itself and not trusted here: name a copy of it in "
     "OTEL_EXPORTER_OTLP_CERTIFICATE, or give the server one of a CA.",
     false},
    {"tls.expired", tls_expired,
     "The server's certificate expired on {not_after}: renew it there (and look at the clock "
     "here).",
     false},
    {"tls.not_yet_valid", tls_not_yet,
     "The server's certificate is not valid yet: look at the clock of this machine.", false},
    {"tls.wrong_host", tls_wrong_host,
     "The server's certificate is for {names} and not for {host}: use that name in {url_from}, or "
     "give the server a certificate for {host}.",
     false},
    {"tls.version_setting", tls_version_setting,
     "{tls_setting} keeps TLS from coming about ({tls_words}), because the server offers nothing "
     "newer than TLS 1.2: take that away, or let the server offer TLS 1.3.",
     false},
    {"tls.version", tls_version,
     "The server and otel-c have no version of TLS in common ({tls_words}): let the server offer "
     "TLS 1.2 or 1.3.",
     false},
    {"tls.wants_certificate", tls_wants,
     "The server wants a certificate from its clients, and there is none: name it in "
     "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its key in OTEL_EXPORTER_OTLP_CLIENT_KEY.",
     false},
    {"tls.refuses_certificate", tls_refuses,
     "The server does not accept the client's certificate ({tls_words}): use one from a CA that "
     "the server trusts.",
     false},
    {"speech.grpc_port", tls_is_grpc,
     "Port {port} of {host} is one for gRPC, and {protocol} is spoken to it: use the port for HTTP, "
     "usually 4318, or set {protocol_from} to grpc.",
     false},
    {"tls.files", tls_files, "A file that TLS needs cannot be used: {tls_words}.", false},
    {"tls.failed", tls_other, "TLS with {host} does not come about: {tls_words}.", false},

    {"speech.wants_tls", wants_tls,
     "The server at {url} speaks TLS: write https:// instead of http:// in {url_from}.", false},
    {"speech.grpc_port", is_grpc_port,
     "Port {port} of {host} is one for gRPC, and {protocol} is spoken to it: use the port for HTTP, "
     "usually 4318, or set {protocol_from} to grpc.",
     false},
    {"speech.http_port", is_http_port,
     "Port {port} of {host} is one for HTTP and not for gRPC: use the port for gRPC, usually 4317, "
     "or set {protocol_from} to http/protobuf.",
     false},
    {"http.silent", never_answers,
     "The server at {url} takes the connection and does not answer within {timeout} ms: look at "
     "its log, it hangs or is something else than a receiver of OTLP.",
     false},
    {"http.none", answers_nothing,
     "What listens at {url} is no receiver of OTLP, or it breaks off ({http_words}): " CORRECT_URL
     ".",
     false},

    /* Without the header that was left out, a receiver may not know who we are. */
    {"settings.header", header_is_bad, "A header is not sent: {header_fault}.", false},
    {"http.redirect", redirects,
     "The server answers with a redirection (status {status}) to {location}, which an exporter "
     "does not follow: put the right URL into {url_from}.",
     false},
    {"http.unauthorized", is_401,
     "The receiver wants to know who sends (status 401){said}: put the credentials into "
     "OTEL_EXPORTER_OTLP_HEADERS, for example authorization=Bearer%20TOKEN.",
     false},
    {"http.forbidden", is_403,
     "The receiver knows who sends and does not allow it (status 403){said}: look at the "
     "credentials in OTEL_EXPORTER_OTLP_HEADERS and at what they permit.",
     false},
    {"http.path_twice", path_is_double,
     "The path is {path} because v1/traces is put behind OTEL_EXPORTER_OTLP_ENDPOINT: take it away "
     "there.",
     false},
    {"http.path_elsewhere", path_is_elsewhere,
     "The receiver has no {path} (status 404) but takes traces at /v1/traces: correct the path in "
     "{url_from}{whole}.",
     false},
    {"http.not_found", is_404,
     "The server at {host} port {port} has no {path} (status 404): it is no receiver of OTLP, or "
     "the path in {url_from} is wrong.",
     false},
    {"http.method", is_405,
     "The server does not take POST at {path} (status {status}): it is no receiver of OTLP, or the "
     "path in {url_from} is wrong.",
     false},
    {"http.media_type", is_415,
     "The receiver does not take {protocol} (status 415){said}: set {protocol_from} to another "
     "protocol, or leave out the compression.",
     false},
    {"http.too_large", is_413,
     "The server refuses even an empty request as too large (status 413): correct its limit.",
     false},
    {"http.too_many", is_429,
     "The receiver has no room for us now (status 429){said}: send less, or ask for a higher quota.",
     false},
    {"http.bad_gateway", is_bad_gateway,
     "A gateway at {host} answers instead of the receiver, which it cannot reach (status {status}): "
     "start the receiver behind it.",
     false},
    {"http.unavailable", is_503,
     "The receiver is there but takes nothing now (status 503){said}: look at its log and at "
     "where it sends spans itself.",
     false},
    {"http.server_error", is_5xx, "The receiver fails (status {status}){said}: look at its log.",
     false},
    {"http.refused", is_4xx,
     "The server refuses the request (status {status}){said}: look at its log, and whether it is a "
     "receiver of OTLP.",
     false},

    {"grpc.unimplemented", grpc_unimplemented,
     "The server speaks gRPC but does not know OTLP's traces (UNIMPLEMENTED){grpc_said}: " CORRECT_URL
     ", or let the receiver take traces.",
     false},
    {"grpc.denied", grpc_denied,
     "The receiver does not let us in (gRPC status {grpc_status}){grpc_said}: put the credentials "
     "into OTEL_EXPORTER_OTLP_HEADERS.",
     false},
    {"grpc.unavailable", grpc_away,
     "The receiver is there but takes nothing now (UNAVAILABLE){grpc_said}: look at its log and at "
     "where it sends spans itself.",
     false},
    {"grpc.none", grpc_silent,
     "What answers at {url} speaks HTTP/2 but not gRPC (status {status}, no grpc-status): " CORRECT_URL
     ".",
     false},
    {"grpc.failed", grpc_fails,
     "The receiver refuses the request (gRPC status {grpc_status}){grpc_said}: look at its log.",
     false},
    {"otlp.none", is_not_otlp,
     "The server at {url} answers, but not as a receiver of OTLP does (status {status}, "
     "{content_type}): " CORRECT_URL ".",
     false},
};

/* What became of the span, and what is wrong without having kept it. To an exporter every status
 * 200 is a success, also that of a web page. */
static const struct rule end_rules[] = {
    {"http.page", is_html,
     "The server at {url} answers with a web page: it is no receiver of OTLP, so correct "
     "{url_from}.",
     false},
    {"otlp.rejected", is_rejected,
     "The receiver takes requests but rejected the test span{span_said}: look at its log and its "
     "limits.",
     false},
    {"span.lost", span_is_lost,
     "Everything answers as it should, but the test span was not accepted ({counters}){span_said}.",
     false},
    {"settings.header", header_is_bad,
     "Spans arrive, but a header is not sent with them: {header_fault}.", false},
    {"settings.slip", other_slip,
     "Spans arrive, but nobody reads the variable {slip}, which is probably meant to be {meant}: "
     "rename it.",
     false},
    {"settings.value", other_value_is_bad,
     "Spans arrive, but a setting does not count: {other_fault}.", false},
    {"healthy", is_accepted, "All is well: the test span was accepted by {url}.", true},
    {"healthy.unsent", is_unsent,
     "All is well as far as can be seen without sending a span: {url} answers as a receiver of OTLP "
     "does.",
     true},
    {"unknown", always, "What is wrong cannot be said from what was seen.", false},
};

/* ---- filling in ----------------------------------------------------------------------- */

static const char *protocol_word(enum doctor_protocol protocol)
{
    static const char *const words[] = {[DOCTOR_HTTP_PROTOBUF] = "http/protobuf",
                                        [DOCTOR_HTTP_JSON] = "http/json",
                                        [DOCTOR_GRPC] = "grpc"};
    return words[protocol];
}

struct place {
    const char *name;
    const char *text;
};

/* What was said, as a part of a sentence; nothing at all is no part. */
static void quote(const char *words, char *out, size_t size)
{
    snprintf(out, size, words[0] != '\0' ? ", saying \"%s\"" : "%s", words);
}

static const char *find_place(const struct place *places, size_t count, const char *name,
                              size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(places[i].name) == length && memcmp(places[i].name, name, length) == 0)
            return places[i].text;
    }
    return "?";
}

static void expand(const char *sentence, const struct place *places, size_t count, char *out,
                   size_t size)
{
    size_t used = 0;
    while (*sentence != '\0' && used + 1 < size) {
        if (*sentence != '{') {
            out[used++] = *sentence++;
            continue;
        }
        const size_t length = strcspn(sentence + 1, "}");
        const char *text = find_place(places, count, sentence + 1, length);
        const int added = snprintf(out + used, size - used, "%s", text);
        used += (size_t)added < size - used ? (size_t)added : size - used - 1;
        sentence += length + 2;
    }
    out[used] = '\0';
}

enum { NUMBERS = 7 };

static void write_numbers(const struct doctor_record *r, char numbers[NUMBERS][24])
{
    const long values[NUMBERS] = {(long)r->target.port,       (long)r->connect.other_port,
                                  (long)r->target.timeout_ms, r->http.status,
                                  r->otlp.grpc_status,        r->process.pid,
                                  (long)r->process.user};
    for (size_t i = 0; i < NUMBERS; i++)
        snprintf(numbers[i], sizeof numbers[i], "%ld", values[i]);
}

static void fill_in(const struct doctor_record *r, const char *sentence, char *out, size_t size)
{
    char numbers[NUMBERS][24];
    char said[DOCTOR_TEXT];
    char grpc_said[DOCTOR_TEXT];
    char span_said[2 * DOCTOR_TEXT];
    write_numbers(r, numbers);
    quote(r->http.words, said, sizeof said);
    quote(r->otlp.words, grpc_said, sizeof grpc_said);
    quote(r->span.words, span_said, sizeof span_said);
    const bool is_whole = r->target.url_is_whole;
    const struct place places[] = {
        {"file_fault", r->settings.file_fault},
        {"disabled_by", r->settings.disabled_by},
        {"exporter_is", r->settings.exporter_is},
        {"sampler_is", r->settings.sampler_is},
        {"url_fault", r->settings.url_fault},
        {"url_hint", r->settings.url_hint},
        {"export_fault", r->settings.export_fault},
        {"other_fault", r->settings.other_fault},
        {"header_fault", r->settings.header_fault},
        {"tls_file_fault", r->settings.tls_file_fault},
        {"slip", r->settings.slip},
        {"meant", r->settings.meant},
        {"url", r->target.url},
        {"url_from", r->target.url_from},
        {"correct", r->target.url_is_default ? "set" : "correct"},
        {"whole", is_whole ? ", which is used as it is" : ""},
        {"host", r->target.host},
        {"path", r->target.path},
        {"unix_path", r->target.unix_path},
        {"protocol", protocol_word(r->target.protocol)},
        {"protocol_from", r->target.protocol_from},
        {"proxy", r->target.proxy},
        {"proxy_from", r->target.proxy_from},
        {"name_problem", r->name.problem},
        {"connect_error", strerror(r->connect.error)},
        {"issuer", r->tls.issuer},
        {"names", r->tls.names[0] != '\0' ? r->tls.names : "nobody"},
        {"not_after", r->tls.not_after},
        {"tls_words", r->tls.words},
        {"tls_setting", r->target.tls_setting},
        {"http_words", r->http.words},
        {"content_type", r->http.content_type[0] != '\0' ? r->http.content_type : "no type"},
        {"location", r->http.location[0] != '\0' ? r->http.location : "nowhere"},
        {"said", said},
        {"grpc_said", grpc_said},
        {"span_said", span_said},
        {"counters", r->span.counters},
        {"port", numbers[0]},
        {"other_port", numbers[1]},
        {"timeout", numbers[2]},
        {"status", numbers[3]},
        {"grpc_status", numbers[4]},
        {"pid", numbers[5]},
        {"user", numbers[6]},
        {"process_words", r->process.words},
        {"process_message", r->process.message},
    };
    expand(sentence, places, sizeof places / sizeof places[0], out, size);
}

/* The first rule that holds, or NULL. */
static const struct rule *first_of(const struct rule *rules, size_t count,
                                   const struct doctor_record *record)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].holds(record))
            return &rules[i];
    }
    return NULL;
}

#define FIRST_OF(rules, record) first_of(rules, sizeof(rules) / sizeof(rules)[0], record)

void doctor_diagnose(const struct doctor_record *record, struct doctor_diagnosis *diagnosis)
{
    const struct rule *rule = FIRST_OF(settings_rules, record);
    if (rule == NULL && record->span.result != DOCTOR_FINE)
        rule = FIRST_OF(way_rules, record);
    if (rule == NULL)
        rule = FIRST_OF(end_rules, record);
    diagnosis->rule = rule->name;
    diagnosis->is_healthy = rule->is_healthy;
    fill_in(record, rule->sentence, diagnosis->sentence, sizeof diagnosis->sentence);
}
