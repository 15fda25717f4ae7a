/* SPDX-License-Identifier: Apache-2.0 */
/* tools/doctor/doctor_diagnosis.c - the contract is in tools/doctor/doctor_diagnosis.h.
 *
 * The rules stand in the order in which things can go wrong, a cause before its consequences:
 * settings that keep everything in, settings that lead astray, files, name, connection, proxy, TLS,
 * HTTP, OTLP, the span; at the end what is wrong without having done harm. */
#include "tools/doctor/doctor_diagnosis.h"

#include <errno.h>
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
    case DOCTOR_PROCESS_HIDDEN:
        return say(d, "process.hidden",
                   "Process %ld is hidden from this user, because /proc is mounted with hidepid: "
                   "run otel-doctor as root.",
                   pid);
    case DOCTOR_PROCESS_OF_ANOTHER:
        return say(d, "process.user",
                   "Process %ld belongs to user %u, and the kernel lets only that user and root "
                   "look into it: run otel-doctor as one of them.",
                   pid, process->user);
    case DOCTOR_PROCESS_UNDUMPABLE:
        return say(d, "process.dumpable",
                   "Process %ld has dropped privileges or is not dumpable for another reason "
                   "(PR_SET_DUMPABLE), and the kernel lets only root look into it then: run "
                   "otel-doctor as root.",
                   pid);
    case DOCTOR_PROCESS_FORBIDDEN:
        return say(d, "process.forbidden",
                   "The kernel does not let otel-doctor look into process %ld (%s): give it "
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

/* What keeps spans in the program, or sends them astray. */
static bool diagnose_settings(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_settings_seen *seen = &r->settings;
    const bool got_through = r->otlp.result == DOCTOR_FINE || r->span.result == DOCTOR_FINE;
    if (seen->file_fault[0] != '\0')
        return say(d, "config.file",
                   "The configuration file cannot be used, so nothing is started: %s.",
                   seen->file_fault);
    if (seen->disabled_by[0] != '\0')
        return say(d, "settings.disabled",
                   "Nothing is recorded because of %s: take that away to send spans.",
                   seen->disabled_by);
    if (seen->exporter_is_none)
        return say(d, "settings.exporter_none",
                   "No span leaves the program because of %s: take that away, or set it to otlp.",
                   seen->exporter_is);
    if (seen->exporter_is[0] != '\0')
        return say(d, "settings.exporter_other",
                   "No span is sent to a receiver because %s does not name otlp: add it there.",
                   seen->exporter_is);
    if (seen->sampler_is[0] != '\0')
        return say(d, "settings.sampler_off",
                   "No span is recorded because of %s, which drops every trace: take that away.",
                   seen->sampler_is);
    if (seen->url_fault[0] != '\0')
        return say(d, "settings.url",
                   "%s is no URL that can be used, and the default stands in for it: %s.",
                   seen->url_fault, seen->url_hint);
    if (seen->export_fault[0] != '\0')
        return say(d, "settings.export", "A setting does not count: %s.", seen->export_fault);
    if (seen->slip_is_export && !got_through)
        return say(d, "settings.slip_export",
                   "Nobody reads the variable %s, which is probably meant to be %s: rename it.",
                   seen->slip, seen->meant);
    return r->target.is_tls && seen->tls_file_fault[0] != '\0' &&
           say(d, "tls.file", "A file that TLS needs cannot be used: %s.", seen->tls_file_fault);
}

/* ---- name, connect, proxy ------------------------------------------------------------- */

static bool diagnose_name(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (r->name.result != DOCTOR_FAILED)
        return false;
    if (to->proxy[0] != '\0')
        return say(d, "proxy.name",
                   "The proxy %s, which %s names, has a host that cannot be found (%s): correct "
                   "%s, or put %s into no_proxy.",
                   to->proxy, to->proxy_from, r->name.problem, to->proxy_from, to->host);
    if (r->name.no_server)
        return say(d, "name.server",
                   "The name %s could not be looked up because no name server answered (%s): look "
                   "at the network and at resolv.conf.",
                   to->host, r->name.problem);
    return say(d, "name.unknown", "There is no host with the name %s (%s): %s %s.", to->host,
               r->name.problem, correct(to), to->url_from);
}

static bool diagnose_socket(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (r->connect.error == ENOENT)
        return say(d, "connect.socket_missing",
                   "There is no socket %s: start the receiver, or %s %s.", to->unix_path,
                   correct(to), to->url_from);
    if (r->connect.error == EACCES)
        return say(d, "connect.socket_denied",
                   "This user may not write to the socket %s: change its permissions.",
                   to->unix_path);
    return say(d, "connect.socket_dead",
               "Nobody listens on the socket %s (%s): start the receiver, or %s %s.", to->unix_path,
               strerror(r->connect.error), correct(to), to->url_from);
}

static bool diagnose_connect(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const int error = r->connect.error;
    if (r->connect.result != DOCTOR_FAILED)
        return false;
    if (to->proxy[0] != '\0')
        return say(d, "proxy.connect",
                   "The proxy %s, which %s names, cannot be reached (%s): start it, or put %s into "
                   "no_proxy.",
                   to->proxy, to->proxy_from, strerror(error), to->host);
    if (to->unix_path[0] != '\0')
        return diagnose_socket(r, d);
    if (r->connect.other_port != 0)
        return say(d, "connect.other_port",
                   "Nobody listens on port %u of %s, but somebody does on port %u: use that one "
                   "with the protocol that belongs to it (4318 is http/protobuf, 4317 is grpc).",
                   to->port, to->host, r->connect.other_port);
    if (error == ECONNREFUSED)
        return say(d, "connect.refused",
                   "Nobody listens on port %u of %s (connection refused): start the receiver "
                   "there, or %s %s.",
                   to->port, to->host, correct(to), to->url_from);
    if (error == ETIMEDOUT)
        return say(d, "connect.silent",
                   "Port %u of %s does not answer (connection timed out): the host is down, or a "
                   "firewall is between it and this machine.",
                   to->port, to->host);
    return say(d, "connect.failed",
               "Port %u of %s cannot be reached (%s): look at the network, or %s %s.", to->port,
               to->host, strerror(error), correct(to), to->url_from);
}

static bool diagnose_proxy(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (!r->http.proxy_refused)
        return false;
    if (r->http.status == 407)
        return say(d, "proxy.password",
                   "The proxy %s wants a user and a password (status 407): put them into %s as "
                   "http://user:password@host:port.",
                   to->proxy, to->proxy_from);
    return say(d, "proxy.refused",
               "The proxy %s does not connect to %s (status %d): ask who runs it, or put %s into "
               "no_proxy.",
               to->proxy, to->host, r->http.status, to->host);
}

/* ---- TLS and what speaks there -------------------------------------------------------- */

static bool say_grpc_port(const struct doctor_target *to, struct doctor_diagnosis *d)
{
    return say(d, "speech.grpc_port",
               "Port %u of %s is one for gRPC, and %s is spoken to it: use the port for HTTP, "
               "usually 4318, or set %s to grpc.",
               to->port, to->host, doctor_protocol_word(to->protocol), to->protocol_from);
}

/* What is wrong with the server's certificate. */
static bool diagnose_certificate(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const struct doctor_tls *tls = &r->tls;
    switch (tls->problem) {
    case DOCTOR_TLS_UNKNOWN_CA:
        return say(d, "tls.unknown_ca",
                   "The server's certificate is from a CA that is not trusted here (%s): name that "
                   "CA's file in OTEL_EXPORTER_OTLP_CERTIFICATE.",
                   tls->issuer);
    case DOCTOR_TLS_SELF_SIGNED:
        return say(d, "tls.self_signed",
                   "The server's certificate is signed by itself and not trusted here: name a copy "
                   "of it in OTEL_EXPORTER_OTLP_CERTIFICATE, or give the server one of a CA.");
    case DOCTOR_TLS_EXPIRED:
        return say(d, "tls.expired",
                   "The server's certificate expired on %s: renew it there (and look at the clock "
                   "here).",
                   tls->not_after);
    case DOCTOR_TLS_NOT_YET_VALID:
        return say(d, "tls.not_yet_valid",
                   "The server's certificate is not valid yet: look at the clock of this machine.");
    case DOCTOR_TLS_WRONG_HOST:
        return say(d, "tls.wrong_host",
                   "The server's certificate is for %s and not for %s: use that name in %s, or "
                   "give the server a certificate for %s.",
                   tls->names[0] != '\0' ? tls->names : "nobody", to->host, to->url_from, to->host);
    default:
        return false;
    }
}

static bool speaks_tls(const struct doctor_http *http)
{
    return http->speech == DOCTOR_SPEECH_TLS || http->speech == DOCTOR_SPEECH_HTTP2_IN_TLS;
}

static bool diagnose_tls(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const struct doctor_tls *tls = &r->tls;
    if (to->is_tls && r->http.result == DOCTOR_FAILED &&
        (r->http.speech == DOCTOR_SPEECH_HTTP1 || r->http.speech == DOCTOR_SPEECH_HTTP2))
        return say(d, "tls.plain",
                   "The server at %s speaks plain HTTP and not TLS: write http:// instead of "
                   "https:// in %s, or use its port for TLS.",
                   to->url, to->url_from);
    if (tls->result != DOCTOR_FAILED)
        return false;
    switch (tls->problem) {
    case DOCTOR_TLS_NOT_TLS:
        return say(d, "tls.not_tls",
                   "What answers at %s is not TLS: write http:// instead of https:// in %s, or use "
                   "its port for TLS.",
                   to->url, to->url_from);
    case DOCTOR_TLS_VERSION:
        if (to->tls_setting[0] != '\0' && speaks_tls(&r->http))
            return say(d, "tls.version_setting",
                       "%s keeps TLS from coming about (%s), because the server offers nothing "
                       "newer than TLS 1.2: take that away, or let the server offer TLS 1.3.",
                       to->tls_setting, tls->words);
        return say(d, "tls.version",
                   "The server and otel-c have no version of TLS in common (%s): let the server "
                   "offer TLS 1.2 or 1.3.",
                   tls->words);
    case DOCTOR_TLS_WANTS_CERTIFICATE:
        return say(d, "tls.wants_certificate",
                   "The server wants a certificate from its clients, and there is none: name it in "
                   "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and its key in "
                   "OTEL_EXPORTER_OTLP_CLIENT_KEY.");
    case DOCTOR_TLS_REFUSES_CERTIFICATE:
        return say(d, "tls.refuses_certificate",
                   "The server does not accept the client's certificate (%s): use one from a CA "
                   "that the server trusts.",
                   tls->words);
    case DOCTOR_TLS_FILES:
        return say(d, "tls.files", "A file that TLS needs cannot be used: %s.", tls->words);
    default:
        if (tls->problem == DOCTOR_TLS_NO_HTTP1 && to->protocol != OTEL_OTLP_GRPC)
            return say_grpc_port(to, d);
        return diagnose_certificate(r, d) ||
               say(d, "tls.failed", "TLS with %s does not come about: %s.", to->host, tls->words);
    }
}

/* A server of HTTP says no to gRPC's path or media type, and has no grpc-status. */
static bool is_http_port(const struct doctor_record *r)
{
    if (r->target.protocol != OTEL_OTLP_GRPC)
        return false;
    if (r->http.result == DOCTOR_FAILED)
        return r->http.speech == DOCTOR_SPEECH_HTTP1 || r->http.version[0] == '1';
    const int status = r->http.status;
    const bool says_no = status == 404 || status == 405 || status == 415;
    return strcmp(r->http.version, "2") != 0 || (says_no && r->otlp.grpc_status < 0);
}

static bool is_grpc_port(const struct doctor_record *r)
{
    return r->target.protocol != OTEL_OTLP_GRPC && r->http.result == DOCTOR_FAILED &&
           (r->http.speech == DOCTOR_SPEECH_HTTP2 ||
            (r->target.is_tls && r->http.speech == DOCTOR_SPEECH_HTTP2_IN_TLS));
}

static bool diagnose_speech(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    if (!to->is_tls && speaks_tls(&r->http))
        return say(d, "speech.wants_tls",
                   "The server at %s speaks TLS: write https:// instead of http:// in %s.", to->url,
                   to->url_from);
    if (is_grpc_port(r))
        return say_grpc_port(to, d);
    if (is_http_port(r))
        return say(d, "speech.http_port",
                   "Port %u of %s is one for HTTP and not for gRPC: use the port for gRPC, usually "
                   "4317, or set %s to http/protobuf.",
                   to->port, to->host, to->protocol_from);
    if (r->http.timed_out)
        return say(d, "http.silent",
                   "The server at %s takes the connection and does not answer within %u ms: look "
                   "at its log, it hangs or is something else than a receiver of OTLP.",
                   to->url, to->timeout_ms);
    return r->http.result == DOCTOR_FAILED &&
           say(d, "http.none",
               "What listens at %s is no receiver of OTLP, or it breaks off (%s): %s %s.", to->url,
               r->http.words, correct(to), to->url_from);
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
    if (r->http.status_elsewhere == 200)
        return say(d, "http.path_elsewhere",
                   "The receiver has no %s (status 404) but takes traces at /v1/traces: correct "
                   "the path in %s%s.",
                   to->path, to->url_from, to->url_is_whole ? ", which is used as it is" : "");
    return say(d, "http.not_found",
               "The server at %s port %u has no %s (status 404): it is no receiver of OTLP, or the "
               "path in %s is wrong.",
               to->host, to->port, to->path, to->url_from);
}

static bool diagnose_status(const struct doctor_record *r, const char *said,
                            struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const int status = r->http.status;
    switch (status) {
    case 401:
        return say(d, "http.unauthorized",
                   "The receiver wants to know who sends (status 401)%s: put the credentials into "
                   "OTEL_EXPORTER_OTLP_HEADERS, for example authorization=Bearer%%20TOKEN.",
                   said);
    case 403:
        return say(d, "http.forbidden",
                   "The receiver knows who sends and does not allow it (status 403)%s: look at the "
                   "credentials in OTEL_EXPORTER_OTLP_HEADERS and at what they permit.",
                   said);
    case 404:
        return diagnose_path(r, d);
    case 405:
    case 501:
        return say(d, "http.method",
                   "The server does not take POST at %s (status %d): it is no receiver of OTLP, or "
                   "the path in %s is wrong.",
                   to->path, status, to->url_from);
    case 413:
        return say(d, "http.too_large",
                   "The server refuses even an empty request as too large (status 413): correct "
                   "its limit.");
    case 415:
        return say(d, "http.media_type",
                   "The receiver does not take %s (status 415)%s: set %s to another protocol, or "
                   "leave out the compression.",
                   doctor_protocol_word(to->protocol), said, to->protocol_from);
    case 429:
        return say(d, "http.too_many",
                   "The receiver has no room for us now (status 429)%s: send less, or ask for a "
                   "higher quota.",
                   said);
    case 502:
    case 504:
        return say(d, "http.bad_gateway",
                   "A gateway at %s answers instead of the receiver, which it cannot reach (status "
                   "%d): start the receiver behind it.",
                   to->host, status);
    case 503:
        return say(d, "http.unavailable",
                   "The receiver is there but takes nothing now (status 503)%s: look at its log "
                   "and at where it sends spans itself.",
                   said);
    default:
        return false;
    }
}

static bool diagnose_http(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_http *http = &r->http;
    char room[2 * DOCTOR_TEXT];
    const char *said = quote(http->words, room);
    /* Without the header that was left out, a receiver may not know who we are. */
    if (r->settings.header_fault[0] != '\0')
        return say(d, "settings.header", "A header is not sent: %s.", r->settings.header_fault);
    if (http->result != DOCTOR_FINE || http->status < 300)
        return false;
    if (http->status < 400)
        return say(d, "http.redirect",
                   "The server answers with a redirection (status %d) to %s, which an exporter "
                   "does not follow: put the right URL into %s.",
                   http->status, http->location[0] != '\0' ? http->location : "nowhere",
                   r->target.url_from);
    if (diagnose_status(r, said, d))
        return true;
    if (http->status >= 500)
        return say(d, "http.server_error", "The receiver fails (status %d)%s: look at its log.",
                   http->status, said);
    return say(d, "http.refused",
               "The server refuses the request (status %d)%s: look at its log, and whether it is a "
               "receiver of OTLP.",
               http->status, said);
}

/* ---- OTLP and the span ---------------------------------------------------------------- */

static bool diagnose_grpc(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_target *to = &r->target;
    const int status = r->otlp.grpc_status;
    char room[2 * DOCTOR_TEXT];
    const char *said = quote(r->otlp.words, room);
    if (to->protocol != OTEL_OTLP_GRPC || r->otlp.result != DOCTOR_FAILED)
        return false;
    switch (status) {
    case 12:
        return say(d, "grpc.unimplemented",
                   "The server speaks gRPC but does not know OTLP's traces (UNIMPLEMENTED)%s: %s "
                   "%s, or let the receiver take traces.",
                   said, correct(to), to->url_from);
    case 7:
    case 16:
        return say(d, "grpc.denied",
                   "The receiver does not let us in (gRPC status %d)%s: put the credentials into "
                   "OTEL_EXPORTER_OTLP_HEADERS.",
                   status, said);
    case 14:
        return say(d, "grpc.unavailable",
                   "The receiver is there but takes nothing now (UNAVAILABLE)%s: look at its log "
                   "and at where it sends spans itself.",
                   said);
    default:
        if (status >= 0)
            return say(d, "grpc.failed",
                       "The receiver refuses the request (gRPC status %d)%s: look at its log.",
                       status, said);
        return say(d, "grpc.none",
                   "What answers at %s speaks HTTP/2 but not gRPC (status %d, no grpc-status): %s "
                   "%s.",
                   to->url, r->http.status, correct(to), to->url_from);
    }
}

static bool diagnose_otlp(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const char *type = r->http.content_type[0] != '\0' ? r->http.content_type : "no type";
    return r->otlp.result == DOCTOR_FAILED && !r->http.is_html &&
           say(d, "otlp.none",
               "The server at %s answers, but not as a receiver of OTLP does (status %d, %s): %s "
               "%s.",
               r->target.url, r->http.status, type, correct(&r->target), r->target.url_from);
}

/* What became of the span, and what is wrong without having kept it. To an exporter every status
 * 200 is a success, also that of a web page. */
static bool diagnose_end(const struct doctor_record *r, struct doctor_diagnosis *d)
{
    const struct doctor_settings_seen *seen = &r->settings;
    char room[2 * DOCTOR_TEXT];
    if (r->http.result == DOCTOR_FINE && r->otlp.result == DOCTOR_FAILED && r->http.is_html)
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
    if (seen->header_fault[0] != '\0')
        return say(d, "settings.header", "Spans arrive, but a header is not sent with them: %s.",
                   seen->header_fault);
    if (seen->slip[0] != '\0')
        return say(d, "settings.slip",
                   "Spans arrive, but nobody reads the variable %s, which is probably meant to be "
                   "%s: rename it.",
                   seen->slip, seen->meant);
    if (seen->other_fault[0] != '\0')
        return say(d, "settings.value", "Spans arrive, but a setting does not count: %s.",
                   seen->other_fault);
    d->is_healthy = r->span.result == DOCTOR_FINE || r->otlp.result == DOCTOR_FINE;
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
    static step *const way[] = {diagnose_name,   diagnose_connect, diagnose_proxy, diagnose_tls,
                                diagnose_speech, diagnose_http,    diagnose_grpc,  diagnose_otlp};
    diagnosis->is_healthy = false;
    if (diagnose_process(&record->process, diagnosis) || diagnose_settings(record, diagnosis))
        return;
    for (size_t i = 0; record->span.result != DOCTOR_FINE && i < sizeof way / sizeof way[0]; i++)
        if (way[i](record, diagnosis))
            return;
    diagnose_end(record, diagnosis);
}
