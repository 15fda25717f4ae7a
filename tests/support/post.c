/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/post.c - the contracts are in post.h. */
#include "tests/support/post.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <curl/curl.h>
#include <stdio.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void must(bool fine)
{
    if (!fine) {
        perror("post");
        abort();
    }
}

static size_t keep_line(char *bytes, size_t one, size_t length, void *state)
{
    struct post *post = state;
    (void)one;
    for (size_t i = 0; i < length && post->head_length + 1 < sizeof post->head; i++)
        post->head[post->head_length++] = bytes[i];
    post->head[post->head_length] = '\0';
    return length;
}

static size_t keep_body(char *bytes, size_t one, size_t length, void *state)
{
    struct post *post = state;
    (void)one;
    for (size_t i = 0; i < length; i++)
        if (post->answer_length + i < sizeof post->answer)
            post->answer[post->answer_length + i] = bytes[i];
    post->answer_length += length;
    return post->hang_up_after != 0 && post->answer_length >= post->hang_up_after ? 0 : length;
}

static void set_tls(CURL *curl, const struct post *post)
{
    if (post->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, post->ca_file);
    if (post->certificate_file != NULL)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, post->certificate_file);
    if (post->key_file != NULL)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, post->key_file);
}

static struct curl_slist *make_headers(const struct post *post)
{
    char line[128];
    snprintf(line, sizeof line, "Content-Type: %s",
             post->content_type != NULL ? post->content_type : "application/x-protobuf");
    struct curl_slist *headers = curl_slist_append(NULL, line);
    headers = curl_slist_append(headers, "Expect:");
    if (post->header != NULL)
        headers = curl_slist_append(headers, post->header);
    return headers;
}

void post_send(struct post *post)
{
    CURL *curl = curl_easy_init();
    must(curl != NULL);
    struct curl_slist *headers = make_headers(post);
    const bool is_tls = strncmp(post->url, "https:", 6) == 0;
    const long http2 = is_tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    post->status = 0;
    post->head_length = post->answer_length = 0;
    post->head[0] = post->answer[0] = '\0';
    curl_easy_setopt(curl, CURLOPT_URL, post->url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post->body != NULL ? post->body : "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)post->length);
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     post->timeout_ms != 0 ? post->timeout_ms : (long)POST_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
                     post->is_http2 ? http2 : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, post->unix_path);
    curl_easy_setopt(curl, CURLOPT_PROXY, post->proxy != NULL ? post->proxy : "");
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, keep_line);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, post);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, post);
    set_tls(curl, post);
    post->result = (int)curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &post->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}

bool post_got_line(const struct post *post, const char *line)
{
    const size_t length = strlen(line);
    for (const char *at = strstr(post->head, line); at != NULL; at = strstr(at + 1, line))
        if ((at == post->head || at[-1] == '\n') && strncmp(at + length, "\r\n", 2) == 0)
            return true;
    return false;
}

void post_span_id(uint64_t number, uint8_t id[8])
{
    for (size_t i = 0; i < 8; i++)
        id[i] = (uint8_t)(number >> (56 - 8 * i));
}

uint8_t *post_make_spans(uint64_t first, size_t count, const char *name, size_t *length)
{
    typedef Opentelemetry__Proto__Trace__V1__Span pb_span;
    static uint8_t trace_id[16] = {1};
    pb_span *spans = calloc(count, sizeof *spans);
    pb_span **list = calloc(count, sizeof(*list));
    uint8_t(*ids)[8] = calloc(count, sizeof *ids);
    must(spans != NULL && list != NULL && ids != NULL);
    for (size_t i = 0; i < count; i++) {
        opentelemetry__proto__trace__v1__span__init(list[i] = &spans[i]);
        post_span_id(first + i, ids[i]);
        spans[i].trace_id = (ProtobufCBinaryData){sizeof trace_id, trace_id};
        spans[i].span_id = (ProtobufCBinaryData){8, ids[i]};
        spans[i].name = (char *)(uintptr_t)name;
    }
    Opentelemetry__Proto__Trace__V1__ScopeSpans scope;
    Opentelemetry__Proto__Trace__V1__ResourceSpans resource;
    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request;
    opentelemetry__proto__trace__v1__scope_spans__init(&scope);
    opentelemetry__proto__trace__v1__resource_spans__init(&resource);
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__init(&request);
    scope.spans = list;
    scope.n_spans = count;
    resource.scope_spans = (Opentelemetry__Proto__Trace__V1__ScopeSpans *[]){&scope};
    resource.n_scope_spans = 1;
    request.resource_spans = (Opentelemetry__Proto__Trace__V1__ResourceSpans *[]){&resource};
    request.n_resource_spans = 1;
    *length = protobuf_c_message_get_packed_size(&request.base);
    uint8_t *bytes = malloc(*length + 1);
    must(bytes != NULL);
    protobuf_c_message_pack(&request.base, bytes);
    free(spans);
    free(list);
    free(ids);
    return bytes;
}

uint8_t *post_make_frame(const void *message, size_t message_length, bool is_compressed,
                         size_t *length)
{
    uint8_t *frame = malloc(message_length + 5);
    must(frame != NULL);
    frame[0] = is_compressed;
    for (size_t i = 0; i < 4; i++)
        frame[1 + i] = (uint8_t)(message_length >> (24 - 8 * i));
    memcpy(frame + 5, message, message_length);
    *length = message_length + 5;
    return frame;
}

int post_connect(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        abort();
    return fd;
}

size_t post_hear(int fd, void *heard, size_t length)
{
    const ssize_t got = length != 0 ? recv(fd, heard, length, MSG_WAITALL) : 0;
    return got > 0 ? (size_t)got : 0;
}

bool post_hears_nothing(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 20) == 0;
}
