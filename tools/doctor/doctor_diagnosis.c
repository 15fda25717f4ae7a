/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_diagnosis.c - the contract is in tools/doctor/doctor_diagnosis.h.
 *
 * The rules stand in the order in which things can go wrong, a cause before its consequences:
 * settings that keep everything in, settings that lead astray, name, connection, proxy, TLS, HTTP,
 * OTLP, the span; at the end what is wrong without having done harm. What libcurl says as well as
 * we could is quoted. */
#include "tools/doctor/doctor_diagnosis.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The rule that holds, and its sentence. True, so that a rule is one line behind its condition. */
static bool say(struct doctor_diagnosis *diagnosis, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool say(struct doctor_diagnosis *diagnosis, const char *rule, const char *format, ...)
{
    va_list arguments;
    diagnosis->rule = rule;
    va_start(arguments, format);
    vsnprintf(diagnosis->sentence, sizeof diagnosis->sentence, format, arguments);
    va_end(arguments);
    return true;
}

/* What was said, as a part of a sentence; nothing at all is no part. */
static const char *quote(const char *words, char out[2 * DOCTOR_TEXT])
{
    snprintf(out, 2 * DOCTOR_TEXT, words[0] != '\0' ? ", saying \"%s\"" : "%s", words);
    return out;
}

/* What to do with the setting that says where spans go. */
static const char *correct(const struct doctor_target *target)
{
    return target->url_is_default ? "set" : "correct";
}

const char *doctor_protocol_word(otel_otlp_protocol protocol)
{
    static const char *const words[] = {[OTEL_OTLP_HTTP_PROTOBUF] = "http/protobuf",
                                        [OTEL_OTLP_HTTP_JSON] = "http/json",
                                        [OTEL_OTLP_GRPC] = "grpc"};
    return words[protocol];
}

/* ---- a process that runs -------------------------------------------------------------- */

static bool samples_nothing(const char *message)
{
    return strstr(message, "; sampler always_off") != NULL ||
           strstr(message, "; sampler parentbased_always_off") != NULL ||
           strstr(message, "; sampler AlwaysOffSampler") != NULL;
}

static bool diagnose_message(const struct doctor_process *process, struct doctor_diagnosis *d)
{
    const char *rule = "process.exports";
    if (strstr(process->message, "no span is recorded") != NULL)
        rule = "process.disabled";
    else if (strstr(process->message, "spans go nowhere") != NULL)
        rule = "process.exporter_none";
    else if (samples_nothing(process->message))
        rule = "process.sampler_off";
    else
        d->is_healthy = true;
    return say(d, rule, "In process %ld %s.", process->pid, process->message);
}

static bool diagnose_process(const struct doctor_process *process, struct doctor_diagnosis *d)
{
    const long pid = process->pid;
    switch (process->state) {
    case DOCTOR_PROCESS_NOT_ASKED:
        return false;
    case DOCTOR_PROCESS_ABSENT:
        return say(d, "process.absent",
                   "There is no process %ld: take its number as otel-doctor sees it, in the same "
                   "container.",
                   pid);
    case DOCTOR_PROCESS_FORBIDDEN:
        return say(d, "process.forbidden",
                   "The kernel does not let otel-doctor look into process %ld (%s): run it as the "
                   "user of that process or, where that is not enough, as root with "
                   "CAP_SYS_PTRACE in the name space of that process.",
                   pid, process->words);
    case DOCTOR_PROCESS_SILENT:
        return say(d, "process.silent",
                   "Process %ld says nothing about otel-c: it has not called otel_start or has "
                   "called otel_shutdown, OTEL_C_THREAD_CONTEXT=off keeps it from saying anything, "
                   "or a filter of system calls forbids it memfd_create.",
                   pid);
    case DOCTOR_PROCESS_SPEAKS:
        break;
    }
    return diagnose_message(process, d);
}

/* ---- settings ------------------------------------------------------------------------- */

/* A typo in a variable that decides how spans are sent, or in another; NULL: there is none. */
static const struct doctor_typo *typo_of(const struct doctor_faults *faults, bool is_export)
{
    for (size_t i = 0; i < faults->typo_count; i++) {
        if ((strstr(faults->typos[i].meant, "EXPORTER") != NULL) == is_export)
            return &faults->typos[i];
    }
    return NULL;
}

/* What keeps spans in the program, or sends them astray. */
static bool diagnose_settings(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_faults *faults = &r->faults;
    const bool got_through =
        r->answer.results[DOCTOR_OTLP] == DOCTOR_FINE || r->span.result == DOCTOR_FINE;
    if (faults->file[0] != '\0')
        return say(d, "config.file",
                   "The configuration file cannot be used, so nothing is started: %s.",
                   faults->file);
    if (faults->disabled_by[0] != '\0')
        return say(d, "settings.disabled",
                   "Nothing is recorded because of %s: take that away to send spans.",
                   faults->disabled_by);
    if (faults->exporter_is[0] != '\0')
        return say(d, "settings.exporter",
                   "No span is sent to a receiver because %s does not name otlp: add it there.",
                   faults->exporter_is);
    if (faults->sampler_is[0] != '\0')
        return say(d, "settings.sampler_off",
                   "No span is recorded because of %s, which drops every trace: take that away.",
                   faults->sampler_is);
    if (faults->exporting[0] != '\0')
        return say(d, "settings.export", "A setting does not count: %s.", faults->exporting);
    const struct doctor_typo *typo = typo_of(faults, true);
    return typo != NULL && !got_through &&
           say(d, "settings.typo_export",
               "No program reads the variable %s, which is probably meant to be %s: rename it.",
               typo->name, typo->meant);
}

/* ---- name, connect, proxy ------------------------------------------------------------- */

/* Why there is no connection. */
static const char *reason(const struct doctor_answer *answer)
{
    return answer->connect_error != 0 ? strerror(answer->connect_error) : answer->problem;
}

static bool diagnose_name(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    return r->answer.results[DOCTOR_NAME] == DOCTOR_FAILED && to->proxy[0] == '\0' &&
           say(d, "name.unknown",
               "There is no host with the name %s, or no name server answers: %s %s, or look at "
               "the network and at resolv.conf.",
               to->host, correct(to), to->url_from);
}

static bool diagnose_connect(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const struct doctor_answer *answer = &r->answer;
    if (answer->results[DOCTOR_NAME] != DOCTOR_FAILED &&
        answer->results[DOCTOR_CONNECT] != DOCTOR_FAILED)
        return false;
    if (to->proxy[0] != '\0')
        return say(d, "proxy.connect",
                   "The proxy %s, which %s names, cannot be reached (%s): start it, or put %s into "
                   "no_proxy.",
                   to->proxy, to->proxy_from, reason(answer), to->host);
    if (to->unix_path[0] != '\0')
        return say(d, "connect.socket",
                   "The socket %s takes no connection (%s): start the receiver, or %s %s.",
                   to->unix_path, reason(answer), correct(to), to->url_from);
    if (r->instead == DOCTOR_INSTEAD_PORT)
        return say(d, "connect.other_port",
                   "Nobody listens on port %u of %s, but somebody does on port %u: use that one "
                   "with the protocol that belongs to it (4318 is http/protobuf, 4317 is grpc).",
                   to->port, to->host, to->port == 4318 ? 4317 : 4318);
    if (answer->connect_error == ECONNREFUSED)
        return say(d, "connect.refused",
                   "Nobody listens on port %u of %s (connection refused): start the receiver "
                   "there, or %s %s.",
                   to->port, to->host, correct(to), to->url_from);
    if (answer->timed_out || answer->connect_error == ETIMEDOUT)
        return say(d, "connect.silent",
                   "Port %u of %s does not answer (connection timed out): the host is down, or a "
                   "firewall is between it and this machine.",
                   to->port, to->host);
    return say(d, "connect.failed",
               "Port %u of %s cannot be reached (%s): look at the network, or %s %s.", to->port,
               to->host, reason(answer), correct(to), to->url_from);
}

static bool diagnose_proxy(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (!r->answer.stops_at_proxy)
        return false;
    if (r->answer.proxy_status == 407)
        return say(d, "proxy.password",
                   "The proxy %s wants a user and a password (status 407): put them into %s as "
                   "http://user:password@host:port.",
                   to->proxy, to->proxy_from);
    return say(d, "proxy.refused",
               "The proxy %s does not connect to %s (%s): ask who runs it, or put %s into "
               "no_proxy.",
               to->proxy, to->host, r->answer.problem, to->host);
}

/* ---- TLS and what speaks there -------------------------------------------------------- */

/* What is wrong with the server's certificate: libcurl repeats the words of the TLS library. */
static bool diagnose_certificate(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    static const char trust[] = "name the file of its CA in OTEL_EXPORTER_OTLP_CERTIFICATE";
    static const struct {
        const char *words, *rule, *advice;
    } known[] = {
        {"certificate in certificate chain", "tls.unknown_ca", trust},
        {"issuer certificate", "tls.unknown_ca", trust},
        {"verify the first certificate", "tls.unknown_ca", trust},
        {"certificate signature failure", "tls.unknown_ca", trust},
        {"signed certificate", "tls.self_signed",
         "name a copy of it in OTEL_EXPORTER_OTLP_CERTIFICATE, or give the server one of a CA"},
        {"certificate has expired", "tls.expired", "renew it there (and look at the clock here)"},
        {"certificate is not yet valid", "tls.not_yet_valid", "look at the clock of this machine"},
    };
    const struct doctor_target *to = &r->target;
    const char *problem = r->answer.problem;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(problem, known[i].words) != NULL)
            return say(d, known[i].rule, "The server's certificate is not trusted here (%s): %s.",
                       problem, known[i].advice);
    }
    return strstr(problem, "subject name") != NULL &&
           say(d, "tls.wrong_host",
               "The server's certificate is not for %s (%s): use a name that it is for in %s, or "
               "give the server a certificate for %s.",
               to->host, problem, to->url_from, to->host);
}

static bool diagnose_version(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const char *problem = r->answer.problem;
    if (strstr(problem, "protocol version") == NULL &&
        strstr(problem, "unsupported protocol") == NULL &&
        strstr(problem, "no protocols available") == NULL)
        return false;
    if (r->target.tls_setting[0] != '\0')
        return say(d, "tls.version_setting",
                   "%s keeps TLS from coming about (%s), because the server offers nothing newer "
                   "than TLS 1.2: take that away, or let the server offer TLS 1.3.",
                   r->target.tls_setting, problem);
    return say(d, "tls.version",
               "The server and otel-c have no version of TLS in common (%s): let the server offer "
               "TLS 1.2 or 1.3.",
               problem);
}

static bool diagnose_tls(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const struct doctor_answer *answer = &r->answer;
    if (answer->results[DOCTOR_TLS] != DOCTOR_FAILED)
        return false;
    if (answer->is_tls_file && strstr(answer->problem, "private key") != NULL)
        return say(d, "tls.key",
                   "The client's key cannot be used (%s): it has a pass phrase, or belongs to "
                   "another certificate.",
                   answer->problem);
    if (answer->is_tls_file)
        return say(d, "tls.file", "A file that TLS needs cannot be used: %s.", answer->problem);
    if (diagnose_certificate(r, d) || diagnose_version(r, d))
        return true;
    if (answer->wants_certificate && !to->has_certificate)
        return say(d, "tls.wants_certificate",
                   "The server wants a certificate from its clients, and there is none: name it in "
                   "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its key in "
                   "OTEL_EXPORTER_OTLP_CLIENT_KEY.");
    if (answer->wants_certificate)
        return say(d, "tls.refuses_certificate",
                   "The server does not accept the client's certificate (%s): use one from a CA "
                   "that the server trusts.",
                   answer->problem);
    return say(d, "tls.failed",
               "TLS with %s does not come about (%s): if no server of TLS is there, write http:// "
               "instead of https:// in %s.",
               to->host, answer->problem, to->url_from);
}

static bool diagnose_instead(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    switch (r->instead) {
    case DOCTOR_INSTEAD_PLAIN:
        return say(d, "tls.plain",
                   "The server at %s speaks plain HTTP and not TLS: write http:// instead of "
                   "https:// in %s, or use its port for TLS.",
                   to->url, to->url_from);
    case DOCTOR_INSTEAD_TLS:
        return say(d, "speech.wants_tls",
                   "The server at %s speaks TLS: write https:// instead of http:// in %s.", to->url,
                   to->url_from);
    case DOCTOR_INSTEAD_GRPC:
        return say(d, "speech.grpc_port",
                   "Port %u of %s is one for gRPC, and %s is spoken to it: use the port for HTTP, "
                   "usually 4318, or set %s to grpc.",
                   to->port, to->host, doctor_protocol_word(to->protocol), to->protocol_from);
    case DOCTOR_INSTEAD_HTTP:
        return say(d, "speech.http_port",
                   "Port %u of %s is one for HTTP and not for gRPC: use the port for gRPC, usually "
                   "4317, or set %s to http/protobuf.",
                   to->port, to->host, to->protocol_from);
    default:
        return false;
    }
}

static bool diagnose_silence(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (r->answer.timed_out)
        return say(d, "http.silent",
                   "The server at %s takes the connection and does not answer within %u ms: look "
                   "at its log, it hangs or is something else than a receiver of OTLP.",
                   to->url, to->timeout_ms);
    return r->answer.results[DOCTOR_HTTP] == DOCTOR_FAILED &&
           say(d, "http.none",
               "What listens at %s is no receiver of OTLP, or it breaks off (%s): %s %s.", to->url,
               r->answer.problem, correct(to), to->url_from);
}

/* ---- HTTP ----------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

static bool diagnose_path(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (ends_with(to->path, "/v1/traces/v1/traces"))
        return say(d, "http.path_twice",
                   "The path is %s because v1/traces is put behind OTEL_EXPORTER_OTLP_ENDPOINT: "
                   "take it away there.",
                   to->path);
    if (r->instead == DOCTOR_INSTEAD_PATH)
        return say(d, "http.path_elsewhere",
                   "The receiver has no %s (status 404) but takes traces at /v1/traces: correct "
                   "the path in %s%s.",
                   to->path, to->url_from, to->url_is_whole ? ", which is used as it is" : "");
    return say(d, "http.not_found",
               "The server at %s port %u has no %s (status 404): it is no receiver of OTLP, or the "
               "path in %s is wrong.",
               to->host, to->port, to->path, to->url_from);
}

enum {
    GRPC_UNKNOWN = 2,
    GRPC_UNAUTHENTICATED = 16,
    GRPC_LAST = 16
}; /* above, a status counts as UNKNOWN */

/* What a status says: an HTTP status, or below 300 one of gRPC. The first row that has it. */
static const struct {
    int first, last;
    const char *rule, *what, *advice;
} statuses[] = {
    {7, 7, "grpc.denied", "The receiver does not let us in",
     "put the credentials into OTEL_EXPORTER_OTLP_HEADERS"},
    {16, 16, "grpc.denied", "The receiver does not let us in",
     "put the credentials into OTEL_EXPORTER_OTLP_HEADERS"},
    {14, 14, "grpc.unavailable", "The receiver is there but takes nothing now",
     "look at its log and at where it sends spans itself"},
    {0, 299, "grpc.failed", "The receiver refuses the request", "look at its log"},
    {401, 401, "http.unauthorized", "The receiver wants to know who sends",
     "put the credentials into OTEL_EXPORTER_OTLP_HEADERS, for example "
     "authorization=Bearer%20TOKEN"},
    {403, 403, "http.forbidden", "The receiver knows who sends and does not allow it",
     "look at the credentials in OTEL_EXPORTER_OTLP_HEADERS and at what they permit"},
    {413, 413, "http.too_large", "The server refuses even an empty request as too large",
     "correct its limit"},
    {429, 429, "http.too_many", "The receiver has no room for us now",
     "send less, or ask for a higher quota"},
    {503, 503, "http.unavailable", "The receiver is there but takes nothing now",
     "look at its log and at where it sends spans itself"},
    {300, 499, "http.refused", "The server refuses the request",
     "look at its log, and whether it is a receiver of OTLP"},
    {500, INT_MAX, "http.server_error", "The receiver fails", "look at its log"},
};

/* What the status is about, where that does not depend on the settings. */
static bool say_status(struct doctor_diagnosis *d, bool is_grpc, int status, const char *said)
{
    const int row = is_grpc && status > GRPC_LAST ? GRPC_UNKNOWN : status;
    size_t i = 0;
    while (row < statuses[i].first || row > statuses[i].last)
        i++;
    return say(d, statuses[i].rule, "%s (%sstatus %d)%s: %s.", statuses[i].what,
               is_grpc ? "gRPC " : "", status, said, statuses[i].advice);
}

/* The receiver asks who sends although the settings have headers, which may say it. */
static bool diagnose_credentials(const struct doctor_record *r, bool is_grpc, const char *said,
                                 struct doctor_diagnosis *d)
{
    const int status = is_grpc ? r->answer.grpc_status : r->answer.status;
    if (r->target.headers[0] == '\0' || status != (is_grpc ? GRPC_UNAUTHENTICATED : 401))
        return false;
    return say(d, is_grpc ? "grpc.denied" : "http.unauthorized",
               "The receiver does not accept the credentials that it gets (%sstatus %d)%s: correct "
               "them; the headers of OTEL_EXPORTER_OTLP_HEADERS are sent (%s).",
               is_grpc ? "gRPC " : "", status, said, r->target.headers);
}

static bool diagnose_status(const struct doctor_record *r, const char *said,
                            struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const int status = r->answer.status;
    switch (status) {
    case 404:
        return diagnose_path(r, d);
    case 405:
    case 501:
        return say(d, "http.method",
                   "The server does not take POST at %s (status %d): it is no receiver of OTLP, or "
                   "the path in %s is wrong.",
                   to->path, status, to->url_from);
    case 415:
        return say(d, "http.media_type",
                   "The receiver does not take %s (status 415)%s: set %s to another protocol, or "
                   "leave out the compression.",
                   doctor_protocol_word(to->protocol), said, to->protocol_from);
    case 502:
    case 504:
        return say(d, "http.bad_gateway",
                   "A gateway at %s answers instead of the receiver, which it cannot reach (status "
                   "%d): start the receiver behind it.",
                   to->host, status);
    default:
        return diagnose_credentials(r, false, said, d) || say_status(d, false, status, said);
    }
}

static bool diagnose_http(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_answer *answer = &r->answer;
    char room[2 * DOCTOR_TEXT];
    const char *said = quote(answer->message, room);
    /* Without the header that was left out, a receiver may not know who sends. */
    if (r->faults.headers[0] != '\0')
        return say(d, "settings.header", "A header is not sent: %s.", r->faults.headers);
    if (answer->status < 300)
        return false;
    if (answer->status < 400)
        return say(d, "http.redirect",
                   "The server answers with a redirection (status %d) to %s, which an exporter "
                   "does not follow: put the right URL into %s.",
                   answer->status, answer->location[0] != '\0' ? answer->location : "nowhere",
                   r->target.url_from);
    return diagnose_status(r, said, d);
}

/* ---- OTLP and the span ---------------------------------------------------------------- */

static bool diagnose_grpc(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const int status = r->answer.grpc_status;
    char room[2 * DOCTOR_TEXT];
    const char *said = quote(r->answer.message, room);
    if (to->protocol != OTEL_OTLP_GRPC || r->answer.results[DOCTOR_OTLP] != DOCTOR_FAILED)
        return false;
    if (status == 12)
        return say(d, "grpc.unimplemented",
                   "The server speaks gRPC but does not know OTLP's traces (UNIMPLEMENTED)%s: %s "
                   "%s, or let the receiver take traces.",
                   said, correct(to), to->url_from);
    return diagnose_credentials(r, true, said, d) ||
           (status >= 0 && say_status(d, true, status, said));
}

static bool diagnose_otlp(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_answer *answer = &r->answer;
    return answer->results[DOCTOR_OTLP] == DOCTOR_FAILED && !answer->is_html &&
           say(d, "otlp.none",
               "The server at %s answers, but not as a receiver of OTLP does (status %d, %s): %s "
               "%s.",
               r->target.url, answer->status,
               answer->content_type[0] != '\0' ? answer->content_type : "no type",
               correct(&r->target), r->target.url_from);
}

/* What became of the span, and what is wrong without having kept it. To an exporter every status
 * 200 is a success, also that of a web page. */
static bool diagnose_end(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_faults *faults = &r->faults;
    const enum doctor_result otlp = r->answer.results[DOCTOR_OTLP];
    const struct doctor_typo *typo = typo_of(faults, true);
    char room[2 * DOCTOR_TEXT];
    if (typo == NULL)
        typo = typo_of(faults, false);
    if (otlp == DOCTOR_FAILED && r->answer.is_html)
        return say(d, "http.page",
                   "The server at %s answers with a web page: it is no receiver of OTLP, so "
                   "correct %s.",
                   r->target.url, r->target.url_from);
    if (r->span.stats.rejected != 0)
        return say(d, "otlp.rejected",
                   "The receiver takes requests but rejected the test span%s: look at its log and "
                   "its limits.",
                   quote(r->span.words, room));
    if (r->span.result == DOCTOR_FAILED)
        return say(d, "span.lost",
                   "Everything answers as it should, but the test span was not accepted (%s)%s.",
                   r->span.counters, quote(r->span.words, room));
    if (faults->headers[0] != '\0')
        return say(d, "settings.header", "Spans arrive, but a header is not sent with them: %s.",
                   faults->headers);
    if (typo != NULL)
        return say(d, "settings.typo",
                   "Spans arrive, but no program reads the variable %s, which is probably meant to "
                   "be %s: rename it.",
                   typo->name, typo->meant);
    if (faults->other[0] != '\0')
        return say(d, "settings.value", "Spans arrive, but otel-c warns of a setting: %s.",
                   faults->other);
    d->is_healthy = r->span.result == DOCTOR_FINE || otlp == DOCTOR_FINE;
    if (r->span.result == DOCTOR_FINE)
        return say(d, "healthy", "All is well: the test span was accepted by %s.", r->target.url);
    if (d->is_healthy)
        return say(d, "healthy.unsent",
                   "All is well as far as can be seen without sending a span: %s answers as a "
                   "receiver of OTLP does.",
                   r->target.url);
    return say(d, "unknown", "What is wrong cannot be said from what was seen.");
}

void doctor_diagnose(const struct doctor_record *record, struct doctor_diagnosis *diagnosis)
{
    /* The exporter has the last word: what it got through is no obstacle. */
    typedef bool step(const struct doctor_record *record, struct doctor_diagnosis *diagnosis);
    static step *const steps[] = {diagnose_name,    diagnose_connect, diagnose_proxy,
                                  diagnose_instead, diagnose_silence, diagnose_tls,
                                  diagnose_http,    diagnose_grpc,    diagnose_otlp};
    diagnosis->is_healthy = false;
    if (diagnose_process(&record->process, diagnosis) || diagnose_settings(record, diagnosis))
        return;
    for (size_t i = 0; record->span.result != DOCTOR_FINE && i < sizeof steps / sizeof steps[0];
         i++)
        if (steps[i](record, diagnosis))
            return;
    diagnose_end(record, diagnosis);
}
