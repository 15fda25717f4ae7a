/* SPDX-License-Identifier: Apache-2.0 */
/* examples/service.c - two HTTP services, and traces that go through both.
 *
 *     cc service.c -o service $(pkg-config --cflags --libs otel libmicrohttpd libcurl) -pthread
 *
 *     ./service stock 8081                           one terminal
 *     ./service shop 8080 http://127.0.0.1:8081      another
 *     curl http://127.0.0.1:8080/buy/apple           a third; ask for a unicorn to see an error
 *
 *     ./service --demo 3          all of it at once: three requests, the last one fails
 *
 * Spans go where OTEL_* says: OTEL_TRACES_EXPORTER=console draws them here, and otel-view
 * draws both services' parts of a trace together. A request gives this:
 *
 *     shop   GET /buy/{item}          server, continues the caller's trace if it has one
 *     shop   ├─ check order           internal
 *     shop   ├─ GET                   client: the headers of this request carry the trace on
 *     stock  │  └─ GET /items/{item}  server
 *     stock  │     └─ look on shelf   internal
 *     shop   └─ charge                internal
 *
 * Names, attributes and errors are those of OpenTelemetry's semantic conventions for HTTP, by
 * otel/http.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* asprintf */
#endif
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <otel/http.h>
#include <otel/otel.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A role of this program: shop or stock. */
struct service {
    const char *name;
    const char *route; /* with the item's name behind it */
    unsigned (*answer)(const struct service *service, const char *item);
    const char *stock_url; /* of the shop: where to ask */
    uint16_t port;
};

static otel_tracer *tracer;

/* Stands for the work of a real program. */
static void work_for_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* ---- the way out: a client span, and its context in the request's headers --------------- */

static void set_header(void *carrier, const char *name, const char *value, size_t length)
{
    struct curl_slist **headers = carrier;
    char *line; /* whole: baggage can have 8,192 bytes */
    if (asprintf(&line, "%s: %.*s", name, (int)length, value) < 0)
        return;
    struct curl_slist *longer = curl_slist_append(*headers, line);
    if (longer != NULL)
        *headers = longer;
    free(line);
}

static size_t ignore_body(char *body, size_t size, size_t count, void *state)
{
    (void)body;
    (void)state;
    return size * count;
}

/* GET a URL; the status of the answer, or 0 if there was none: then `why` says so. */
static unsigned http_get(const char *url, struct curl_slist *headers, const char **why)
{
    long status = 0;
    CURL *curl = curl_easy_init();
    if (curl == NULL)
        return 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 60000L);
    const CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    *why = curl_easy_strerror(code);
    curl_easy_cleanup(curl);
    return (unsigned)status;
}

static unsigned ask_stock(const struct service *shop, const char *item)
{
    char url[512];
    snprintf(url, sizeof url, "%s/items/%s", shop->stock_url, item);
    struct curl_slist *headers = NULL;
    otel_span span = otel_http_client_enter(
        tracer, "GET", url, OTEL_HTTP_OPTIONS(.set_header = set_header, .carrier = &headers));
    const char *why = NULL;
    const unsigned status = http_get(url, headers, &why);
    curl_slist_free_all(headers);

    if (status == 0)
        otel_span_fail(span, why);
    otel_http_client_end(span, status, status == 0 ? "no_answer" : NULL);
    return status;
}

/* ---- what the two services do ------------------------------------------------------------ */

static void check_order(const char *item)
{
    OTEL_SCOPED(span, tracer, "check order");
    otel_span_set_string(span, "order.item", item);
    work_for_us(300);
}

static void charge(int cents)
{
    OTEL_SCOPED(span, tracer, "charge");
    otel_span_set_int(span, "payment.cents", cents);
    work_for_us(700);
}

static unsigned shop_answer(const struct service *shop, const char *item)
{
    check_order(item);
    const unsigned status = ask_stock(shop, item);
    if (status != MHD_HTTP_OK)
        return MHD_HTTP_BAD_GATEWAY;
    charge(1299);
    return MHD_HTTP_OK;
}

static unsigned stock_answer(const struct service *stock, const char *item)
{
    (void)stock;
    OTEL_SCOPED(span, tracer, "look on shelf");
    otel_span_set_string(span, "stock.item", item);
    work_for_us(1200);
    if (strcmp(item, "unicorn") == 0) {
        otel_span_record_exception(span, "ShelfError", "the unicorn has left", NULL, NULL, 0);
        otel_span_fail(span, "the shelf is empty");
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
    return MHD_HTTP_OK;
}

/* ---- the way in: a server span that continues the caller's trace -------------------------- */

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
    return MHD_NO; /* enough */
}

static const char *get_header(void *carrier, const char *name, size_t index, size_t *length)
{
    struct wanted wanted = {.name = name, .index = index};
    MHD_get_connection_values(carrier, MHD_HEADER_KIND, look_at_header, &wanted);
    if (wanted.value != NULL)
        *length = strlen(wanted.value);
    return wanted.value;
}

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned status)
{
    const char *text = status < 400 ? "here you are\n" : "sorry\n";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);
    const enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result serve(const struct service *service, struct MHD_Connection *connection,
                             const char *path, const char *method)
{
    const size_t prefix = strlen(service->route);
    const bool is_ours = strcmp(method, "GET") == 0 && strncmp(path, service->route, prefix) == 0;
    otel_span span = otel_http_server_enter(
        tracer, method, path, OTEL_HTTP_OPTIONS(.get_header = get_header, .carrier = connection));
    unsigned status = MHD_HTTP_NOT_FOUND;
    if (is_ours) {
        char route[64];
        snprintf(route, sizeof route, "%s{item}", service->route);
        otel_http_set_route(span, route);
        status = service->answer(service, path + prefix);
    }
    const enum MHD_Result result = reply(connection, status);
    otel_http_server_end(span, status, NULL);
    return result;
}

/* libmicrohttpd calls this on the connection's thread: when the headers are there, and
 * again when the body is. */
static enum MHD_Result on_request(void *state, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **seen)
{
    (void)version;
    (void)body;
    if (*seen == NULL || *body_size != 0) {
        *seen = connection;
        *body_size = 0;
        return MHD_YES;
    }
    return serve(state, connection, path, method);
}

/* ---- a process for each service ------------------------------------------------------------ */

/* Listen on a loopback port; 0 takes a free one and says which. */
static int listen_on(uint16_t *port)
{
    const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        fprintf(stderr, "cannot listen on 127.0.0.1:%u: %s\n", *port, strerror(errno));
        exit(1);
    }
    *port = ntohs(address.sin_port);
    return fd;
}

/* What became of the spans, read after the shutdown. False: some were lost. */
static bool say_what_was_delivered(const char *name)
{
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) != OTEL_OK)
        return true; /* no exporter was asked for */
    printf("%s: delivered %" PRIu64 " of %" PRIu64 " spans\n", name, stats.delivered, stats.ended);
    fflush(stdout);
    if (stats.delivered == stats.ended)
        return true;
    char text[512];
    otel_stats_describe(&stats, text, sizeof text);
    fprintf(stderr, "%s: %s\n", name, text);
    return false;
}

/* Serve until SIGINT or SIGTERM. Returns the exit status. */
static int run(struct service *service, int listener)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads, so that all inherit it */
    curl_global_init(CURL_GLOBAL_DEFAULT);

    /* What OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES may say otherwise. */
    const otel_sdk_options *defaults =
        OTEL_SDK_OPTIONS(.service_name = service->name, .service_version = "1.0");
    otel_status status = otel_start(OTEL_SDK_OPTIONS(.defaults = defaults));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.service", "1.0");

    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL, on_request,
        service, MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_END);
    if (daemon == NULL) {
        fprintf(stderr, "%s: the HTTP server does not start\n", service->name);
        return 1;
    }
    fprintf(stderr, "%s: listening on http://127.0.0.1:%u\n", service->name, service->port);
    int signal_number;
    sigwait(&ends, &signal_number);
    MHD_stop_daemon(daemon);
    status = otel_shutdown(5000);
    const bool all = say_what_was_delivered(service->name);
    return all && (status == OTEL_OK || status == OTEL_ERROR_NOT_STARTED) ? 0 : 1;
}

/* ---- --demo -------------------------------------------------------------------------------- */

/* Each service is a process: it forks off before anything is started in it, and ends when
 * this one does. */
static pid_t spawn(struct service *service, int listener)
{
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    exit(run(service, listener));
}

static bool end(pid_t pid)
{
    int status;
    return pid > 0 && kill(pid, SIGTERM) == 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int demo(struct service *shop, struct service *stock, unsigned long requests)
{
    static const char *const items[] = {"apple", "pear", "plum", "quince"};
    const int stock_listener = listen_on(&stock->port);
    const int shop_listener = listen_on(&shop->port);
    static char stock_url[64]; /* the services look at it after this returns */
    snprintf(stock_url, sizeof stock_url, "http://127.0.0.1:%u", stock->port);
    shop->stock_url = stock_url;
    const pid_t stock_pid = spawn(stock, stock_listener);
    const pid_t shop_pid = spawn(shop, shop_listener);
    close(stock_listener);
    close(shop_listener);

    bool fine = true;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (unsigned long i = 1; i <= requests; i++) {
        const bool is_last = i == requests;
        const char *item = is_last ? "unicorn" : items[i % (sizeof items / sizeof *items)];
        char url[128];
        snprintf(url, sizeof url, "http://127.0.0.1:%u%s%s", shop->port, shop->route, item);
        const char *why = NULL;
        const unsigned status = http_get(url, NULL, &why);
        fine &= status == (is_last ? MHD_HTTP_BAD_GATEWAY : MHD_HTTP_OK);
        if (status == 0)
            fprintf(stderr, "GET %s: %s\n", url, why != NULL ? why : "no memory");
        else
            fprintf(stderr, "GET %s%s: %u\n", shop->route, item, status);
    }
    fine &= end(stock_pid);
    fine &= end(shop_pid);
    return fine ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct service shop = {.name = "shop", .route = "/buy/", .answer = shop_answer};
    struct service stock = {.name = "stock", .route = "/items/", .answer = stock_answer};
    const char *role = argc > 1 ? argv[1] : "";
    const unsigned long number = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

    if (strcmp(role, "--demo") == 0 && argc == 3 && number > 0)
        return demo(&shop, &stock, number);

    struct service *service = NULL;
    if (strcmp(role, "shop") == 0 && argc == 4)
        service = &shop;
    else if (strcmp(role, "stock") == 0 && argc == 3)
        service = &stock;
    if (service == NULL || number > UINT16_MAX) {
        fprintf(stderr, "usage: service --demo REQUESTS\n"
                        "       service stock PORT\n"
                        "       service shop PORT URL-OF-STOCK\n");
        return 2;
    }
    service->stock_url = argv[3];
    service->port = (uint16_t)number;
    const int listener = listen_on(&service->port);
    return run(service, listener);
}
