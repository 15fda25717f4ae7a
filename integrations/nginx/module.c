/* SPDX-License-Identifier: Apache-2.0 */
/* integrations/nginx/module.c - directives; start and end of the SDK in each worker.
 *
 * Only workers start an SDK, when they have given up their privileges, in the environment that
 * nginx.conf gives them (`env`): not the master, nor `nginx -t`, nor the cache's processes.
 * The SDK has no thread: the event loop watches its descriptor, and exports. A second thread would
 * make glibc's system calls and malloc dearer. */
#include "module.h"

#include <ngx_channel.h>

/* How long the end of a worker may take; nginx kills one that it stops after 1.5 s. */
enum { QUIT_MS = 5000, STOP_MS = 1000 };

otel_tracer *ngx_http_otel_tracer;

/* Export what can be exported without waiting, and write what otel-c has to say to the error log.
 * Warnings are errors to nginx, whose logs leave its own warnings out unless told otherwise. */
static void export_and_log(ngx_event_t *unused)
{
    otel_log_level level;
    char text[OTEL_LOG_MESSAGE_SIZE];
    (void)otel_poll(0);
    while (otel_log_take(&level, text, sizeof text))
        ngx_log_error((level <= OTEL_LOG_WARN ? NGX_LOG_ERR : NGX_LOG_NOTICE), ngx_cycle->log, 0,
                      "otel-c: %s", text);
}

static ngx_int_t start_worker(ngx_cycle_t *cycle)
{
    const ngx_flag_t *is_wanted = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_otel_module);
    const bool is_worker = ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE;
    if (is_wanted == NULL || !*is_wanted || !is_worker)
        return NGX_OK;
    otel_log_set_handler(otel_log_keep, NULL);
    const otel_sdk_options defaults = {.size = sizeof defaults, .service_name = "nginx"};
    otel_status status = otel_start(OTEL_SDK_OPTIONS(.defaults = &defaults, .threadless = true));
    const int fd = otel_poll_fd();
    /* Watched by level, and no alert if it is open at the end, as nginx's own channel. */
    if (fd >= 0 && ngx_add_channel_event(cycle, fd, NGX_READ_EVENT, export_and_log) != NGX_OK &&
        otel_shutdown(0) != OTEL_ERROR_NOT_STARTED)
        status = OTEL_ERROR_SYSTEM;
    export_and_log(NULL);
    if (status == OTEL_OK)
        ngx_http_otel_tracer = otel_tracer_get("otel-c.nginx", OTEL_VERSION);
    else
        ngx_log_error(NGX_LOG_ERR, cycle->log, 0, "otel-c: nothing is traced: %s",
                      otel_status_string(status));
    return NGX_OK;
}

static void end_worker(ngx_cycle_t *cycle)
{
    /* nginx 1.22 frees the values of `env` before the destructors of libraries read them. */
    for (char **variable = environ; *variable != NULL; variable++)
        *variable = strdup(*variable);
    if (ngx_http_otel_tracer == NULL)
        return;
    ngx_http_otel_tracer = NULL;
    const bool is_whole = otel_shutdown(ngx_terminate ? STOP_MS : QUIT_MS) == OTEL_OK;
    export_and_log(NULL);
    const ngx_uint_t level = is_whole ? NGX_LOG_NOTICE : NGX_LOG_WARN;
    otel_stats stats = {.size = sizeof stats};
    for (size_t i = 0; otel_stats_read(i, &stats) == OTEL_OK; i++) {
        char text[512];
        (void)otel_stats_describe(&stats, text, sizeof text);
        ngx_log_error(level, cycle->log, 0,
                      "otel-c: exporter %uz: started %uL, unsampled %uL, open %uL, ended %uL: %s",
                      i, stats.started, stats.unsampled, stats.open, stats.ended, text);
    }
}

/* All that there is for a whole configuration: whether otel_trace is on somewhere. */
static void *create_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_flag_t));
}

static void *create_loc_conf(ngx_conf_t *cf)
{
    struct ngx_http_otel_loc_conf *conf = ngx_pcalloc(cf->pool, sizeof *conf);
    if (conf == NULL)
        return NULL;
    conf->trace = conf->trusts_context = NGX_CONF_UNSET;
    conf->sample = NGX_CONF_UNSET_PTR;
    conf->route = NGX_CONF_UNSET_PTR;
    return conf;
}

static char *merge_loc_conf(ngx_conf_t *cf, void *above, void *data)
{
    struct ngx_http_otel_loc_conf *prev = above;
    struct ngx_http_otel_loc_conf *conf = data;
    ngx_flag_t *is_wanted = ngx_http_conf_get_module_main_conf(cf, ngx_http_otel_module);
    ngx_http_core_loc_conf_t *clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    ngx_conf_merge_value(conf->trace, prev->trace, 0);
    ngx_conf_merge_value(conf->trusts_context, prev->trusts_context, 1);
    ngx_conf_merge_ptr_value(conf->sample, prev->sample, NULL);
    ngx_conf_merge_ptr_value(conf->route, prev->route, NULL);
    *is_wanted |= conf->trace;
    /* A block without content of its own, such as `if`, has that of the location around it. */
    conf->handler = clcf->handler != NULL ? clcf->handler : prev->handler;
    if (clcf->handler != NULL && conf->trace)
        clcf->handler = ngx_http_otel_content_handler;
    return NGX_CONF_OK;
}

static ngx_int_t add_handlers(ngx_conf_t *cf)
{
    ngx_http_core_main_conf_t *cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *rewrite = ngx_array_push(&cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers);
    ngx_http_handler_pt *log = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (rewrite == NULL || log == NULL)
        return NGX_ERROR;
    *rewrite = ngx_http_otel_rewrite_handler;
    *log = ngx_http_otel_log_handler;
    return NGX_OK;
}

#define DIRECTIVE(name, type, set, member)                                                       \
    {                                                                                            \
        ngx_string(name), NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | (type),   \
            set, NGX_HTTP_LOC_CONF_OFFSET, offsetof(struct ngx_http_otel_loc_conf, member), NULL \
    }

static ngx_command_t directives[] = {
    DIRECTIVE("otel_trace", NGX_CONF_FLAG, ngx_conf_set_flag_slot, trace),
    DIRECTIVE("otel_trust_context", NGX_CONF_FLAG, ngx_conf_set_flag_slot, trusts_context),
    DIRECTIVE("otel_sample", NGX_CONF_1MORE, ngx_http_set_predicate_slot, sample),
    DIRECTIVE("otel_route", NGX_CONF_TAKE1, ngx_http_set_complex_value_slot, route),
    ngx_null_command,
};

static ngx_http_module_t context = {
    .preconfiguration = ngx_http_otel_add_variables,
    .postconfiguration = add_handlers,
    .create_main_conf = create_main_conf,
    .create_loc_conf = create_loc_conf,
    .merge_loc_conf = merge_loc_conf,
};

ngx_module_t ngx_http_otel_module = {
    NGX_MODULE_V1,
    .ctx = &context,
    .commands = directives,
    .type = NGX_HTTP_MODULE,
    .init_process = start_worker,
    .exit_process = end_worker,
};
