/* SPDX-License-Identifier: Apache-2.0 */
/* A server in the middle: each request is passed on to another server in a client span below its
 * server span, and the answer is passed back. Written as examples/service.c is.
 *
 *   middle URL      says its port on stdout, and serves until stdin ends */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <microhttpd.h>
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static otel_tracer *tracer;

/* ---- the way out ---- */

struct answer {
    char *text;
    size_t length;
};

static void set_header(void *carrier, const char *name, const char *value, size_t length)
{
    struct curl_slist **headers = carrier;
    char *line;
    if (asprintf(&line, "%s: %.*s", name, (int)length, value) < 0)
        abort();
    *headers = curl_slist_append(*headers, line);
    free(line);
}

static size_t take_body(char *body, size_t size, size_t count, void *state)
{
    struct answer *answer = state;
    answer->text = realloc(answer->text, answer->length + size * count);
    memcpy(answer->text + answer->length, body, size * count);
    answer->length += size * count;
    return size * count;
}

static unsigned pass_on(const char *url, const char *path, struct answer *answer)
{
    const otel_span span =
        otel_span_enter(tracer, "GET", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_CLIENT));
    otel_span_set_string(span, "url.path", path);
    struct curl_slist *headers = NULL;
    otel_inject(NULL, set_header, &headers);
    char target[512];
    snprintf(target, sizeof target, "%s%s", url, path);

    long status = 0;
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, target);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    otel_span_end(span);
    return (unsigned)status;
}

/* ---- the way in ---- */

/* A header can be there several times; they are asked for one after the other. */
struct wanted {
    const char *name;
    size_t index;
    const char *value;
};

static enum MHD_Result look_at_header(void *state, enum MHD_ValueKind kind, const char *name,
                                      const char *value)
{
    (void)kind;
    struct wanted *wanted = state;
    if (strcasecmp(name, wanted->name) != 0 || wanted->index-- != 0)
        return MHD_YES;
    wanted->value = value;
    return MHD_NO;
}

static const char *get_header(void *carrier, const char *name, size_t index, size_t *length)
{
    struct wanted wanted = {.name = name, .index = index};
    MHD_get_connection_values(carrier, MHD_HEADER_KIND, look_at_header, &wanted);
    if (wanted.value != NULL)
        *length = strlen(wanted.value);
    return wanted.value;
}

struct listing {
    otel_visit_header *visit;
    void *state;
};

static enum MHD_Result visit_header(void *state, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    (void)kind;
    (void)value;
    const struct listing *listing = state;
    listing->visit(listing->state, name, strlen(name));
    return MHD_YES;
}

static void list_headers(void *carrier, otel_visit_header *visit, void *state)
{
    struct listing listing = {visit, state};
    MHD_get_connection_values(carrier, MHD_HEADER_KIND, visit_header, &listing);
}

static enum MHD_Result serve(const char *url, struct MHD_Connection *connection, const char *path)
{
    const otel_carrier_reader reader = {get_header, list_headers, connection};
    const otel_context parent = otel_extract_from(NULL, &reader);
    const otel_span span = otel_span_enter(
        tracer, "GET /{case}", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER, .parent = &parent));
    otel_span_set_string(span, "url.path", path);
    struct answer answer = {NULL, 0};
    const unsigned status = pass_on(url, path, &answer);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer.length, answer.text, MHD_RESPMEM_MUST_FREE);
    const enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    otel_span_end(span);
    return result;
}

static enum MHD_Result on_request(void *url, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **seen)
{
    (void)method;
    (void)version;
    (void)body;
    if (*seen == NULL || *body_size != 0) {
        *seen = connection;
        *body_size = 0;
        return MHD_YES;
    }
    return serve(url, connection, path);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (otel_start(NULL) != OTEL_OK)
        return 1;
    tracer = otel_tracer_get("middle", NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return 1;
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL,
                         NULL, on_request, argv[1], MHD_OPTION_LISTEN_SOCKET, listener,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)256 * 1024, MHD_OPTION_END);
    if (daemon == NULL)
        return 1;
    printf("%u\n", (unsigned)ntohs(address.sin_port));
    fflush(stdout);
    char end;
    while (read(STDIN_FILENO, &end, 1) > 0)
        ;
    MHD_stop_daemon(daemon);
    return otel_shutdown(10000) != OTEL_OK;
}
