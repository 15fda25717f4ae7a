/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/otlp_client.c - the contracts are in otlp_client.h. One thread at a time; owns the
 * connection, and the bytes of the message on its way. */
#include "exporters/otlp/otlp_client.h"

#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "exporters/otlp/call/request_call.h"
#include "exporters/otlp/encode/request.h"
#include "exporters/otlp/encode/size_limit.h"
#include "exporters/otlp/otlp_options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum phase { CLOSED, OPEN, WOKEN };

struct oteli_otlp_client {
    struct oteli_receiver receiver;
    struct oteli_request_call request_call;
    struct oteli_request request;
    char *name;           /* of the receiver */
    int64_t timeout_ms;   /* of a message; below 0: none */
    uint64_t deadline_ns; /* of what is posted until the close */
    struct oteli_meanwhile meanwhile;
    size_t max_bytes;
    struct oteli_size_limit size_limit;
    uint32_t phase; /* atomic, enum phase; WOKEN by any thread, if it is OPEN */
    void (*free_add_headers_state)(void *state);
};

/* All of it but what the program gave. */
static void dismantle(struct oteli_otlp_client *client)
{
    oteli_request_call_fini(&client->request_call);
    oteli_request_fini(&client->request);
    free(client->name);
    free(client);
}

static struct oteli_otlp_client *make(const struct oteli_options *options)
{
    const otel_otlp_options *given = &options->given;
    struct oteli_otlp_client *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->name = strdup(options->endpoint.name);
    made->receiver = (struct oteli_receiver){.name = made->name,
                                             .protocol = given->protocol,
                                             .add_headers = given->add_headers,
                                             .add_headers_state = given->add_headers_state};
    made->timeout_ms = given->timeout_ms;
    made->max_bytes = given->max_request_bytes;
    if (made->name == NULL ||
        !oteli_request_init(&made->request, given->protocol, given->compression,
                            given->max_request_bytes) ||
        !oteli_request_call_init(&made->request_call, &made->receiver,
                                 oteli_options_transport(options))) {
        dismantle(made);
        return NULL;
    }
    made->free_add_headers_state = given->free_add_headers_state;
    return made;
}

otel_status oteli_otlp_client_new(const otel_otlp_options *given, enum oteli_otlp_signal signal,
                                  struct oteli_otlp_client **client)
{
    struct oteli_options options;
    *client = NULL;
    const otel_status status = oteli_options_init(&options, signal, given);
    if (status != OTEL_OK)
        return status;
    *client = make(&options);
    oteli_options_fini(&options);
    return *client != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

void oteli_otlp_client_free(struct oteli_otlp_client *client)
{
    if (client == NULL)
        return;
    if (client->free_add_headers_state != NULL)
        client->free_add_headers_state(client->receiver.add_headers_state);
    dismantle(client);
}

const char *oteli_otlp_client_receiver(const struct oteli_otlp_client *client)
{
    return client->name;
}

size_t oteli_otlp_client_max_bytes(const struct oteli_otlp_client *client)
{
    return client->max_bytes;
}

static uint64_t deadline_of(const struct oteli_otlp_client *client, int64_t timeout_ms)
{
    if (client->timeout_ms >= 0 && client->timeout_ms < timeout_ms)
        timeout_ms = client->timeout_ms;
    return oteli_deadline_ns(timeout_ms);
}

void oteli_otlp_client_open(struct oteli_otlp_client *client, int64_t timeout_ms,
                            struct oteli_meanwhile meanwhile)
{
    client->deadline_ns = deadline_of(client, timeout_ms);
    client->meanwhile = meanwhile;
    oteli_store_release_32(&client->phase, OPEN);
}

void oteli_otlp_client_close(struct oteli_otlp_client *client)
{
    oteli_store_release_32(&client->phase, CLOSED);
}

static bool is_woken(const struct oteli_otlp_client *client)
{
    return oteli_load_acquire_32(&client->phase) == WOKEN;
}

/* How long to wait now. */
static int patience_ms(const struct oteli_otlp_client *client, bool ends)
{
    if (ends)
        return 0;
    return client->meanwhile.run != NULL ? client->meanwhile.run(client->meanwhile.state) : INT_MAX;
}

/* To the end of the request, which is at once after oteli_otlp_client_wake. */
static void deliver(struct oteli_otlp_client *client)
{
    struct oteli_request_call *request_call = &client->request_call;
    oteli_fence_full(); /* either this thread sees the wake, or the waking one the request */
    bool has_ended = !oteli_request_call_is_pending(request_call);
    while (!has_ended) {
        const bool ends = is_woken(client);
        has_ended = oteli_request_call_go_on(request_call, patience_ms(client, ends),
                                             ends ? 0 : client->deadline_ns);
    }
    oteli_transport_rest(request_call->transport);
}

/* Whether it need not be tried. One that cannot be made smaller shows what the receiver takes
 * now. */
static bool is_too_large(const struct oteli_otlp_client *client,
                         const struct oteli_message *message)
{
    return message->length > client->max_bytes ||
           oteli_size_limit_spans(&client->size_limit, message->items, message->length) !=
               message->items;
}

static void learn(struct oteli_otlp_client *client, const struct oteli_message *message,
                  const struct oteli_otlp_result *result)
{
    if (result->is_delivered)
        oteli_size_limit_accepted(&client->size_limit, message->length, message->is_part,
                                  client->max_bytes);
    else if (result->is_too_large)
        oteli_size_limit_too_large(&client->size_limit, message->items, message->length);
}

static struct oteli_otlp_result result_of(const struct oteli_request_call *request_call)
{
    const struct oteli_outcome *outcome = &request_call->outcome;
    const bool is_delivered = request_call->end == OTELI_CALL_DELIVERED;
    return (struct oteli_otlp_result){
        .is_delivered = is_delivered,
        .is_too_large = request_call->end == OTELI_CALL_TOO_LARGE,
        .has_no_service = !is_delivered && outcome->has_no_service,
        .has_no_time = request_call->end == OTELI_CALL_EXHAUSTED ||
                       request_call->end == OTELI_CALL_UNCONFIRMED,
        .may_have_arrived = !is_delivered && request_call->may_have_arrived,
        .rejected = is_delivered ? outcome->rejected : 0,
        .attempts = request_call->attempts,
        .text = is_delivered ? outcome->message : outcome->problem,
    };
}

struct oteli_otlp_result oteli_otlp_client_post(struct oteli_otlp_client *client,
                                                const struct oteli_message *message)
{
    struct oteli_request *request = &client->request;
    if (is_too_large(client, message))
        return (struct oteli_otlp_result){.is_too_large = true, .text = "it is too large"};
    if (!oteli_request_wrap(request, message->bytes, message->length, 0))
        return (struct oteli_otlp_result){.has_no_memory = true,
                                          .text = "no memory for the request"};
    oteli_request_call_begin(&client->request_call, request->bytes, request->length,
                             is_woken(client) ? 0 : client->deadline_ns);
    deliver(client);
    const struct oteli_otlp_result result = result_of(&client->request_call);
    learn(client, message, &result);
    return result;
}

void oteli_otlp_client_wake(struct oteli_otlp_client *client)
{
    if (!oteli_cas_full_32(&client->phase, OPEN, WOKEN))
        return;
    oteli_fence_full();
    oteli_request_call_wake(&client->request_call);
}
