/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_options.c - the contracts are in view_options.h. */
#include "tools/view/view_options.h"

#include "common/clock/time_units.h"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_PORT = 4318, DEFAULT_GRPC_PORT = 4317 };

static const char usage_text[] =
    "usage: otel-view [OPTION]...\n"
    "Receive traces by OTLP on 127.0.0.1 and draw each one when it is complete.\n"
    "Senders have to speak http/protobuf or grpc without TLS (not http/json); they may\n"
    "compress with gzip or zstd.\n"
    "\n"
    "  --port N         listen for http/protobuf on this port; 0: any free one (default 4318)\n"
    "  --grpc-port N    the same for grpc (default 4317, or with --port any free one)\n"
    "\n"
    "  --follow         print a line for each span as it comes, instead of drawing traces\n"
    "  --json           print each request as a line of OTLP/JSON instead\n"
    "  --discard        for load: look into no span, but count spans, requests and bytes, and\n"
    "                   print each second how many have come\n"
    "  --all            leave nothing out: all attributes, events and links, uncut\n"
    "\n"
    "  --service NAME   show only traces with a span of this service; with --follow only spans.\n"
    "                   In a name * is any text, and ? any character\n"
    "  --name NAME      the same for the span's name\n"
    "  --error          the same for spans that failed\n"
    "  --longer MS      the same for spans that took so long or longer; 0.5 is half of one.\n"
    "                   All that is asked for has to be true of one span\n"
    "\n"
    "  --count N        end when N spans have been received\n"
    "  --idle-exit MS   end when nothing has been received for so long\n"
    "  --help           print this\n"
    "  --version        print the version\n"
    "\n"
    "Traces are drawn in the order in which they started; one that lacks a span delays those\n"
    "behind it for 5 seconds. The first line on stderr names the addresses. SIGINT and SIGTERM\n"
    "draw the rest and end.\n";

static bool parse_number(const char *text, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *text >= '0' && *text <= '9' &&
           *number <= max;
}

static bool parse_port(const char *text, uint16_t *port)
{
    uint64_t number;
    if (!parse_number(text, UINT16_MAX, &number))
        return false;
    *port = (uint16_t)number;
    return true;
}

static bool parse_milliseconds(const char *text, uint64_t *ns)
{
    char *end;
    const double ms = strtod(text, &end);
    if (end == text || *end != '\0' || !(ms > 0 && ms < 1e9))
        return false;
    *ns = (uint64_t)(ms * (double)OTELI_NS_PER_MS + 0.5);
    return true;
}

/* False: its argument is no number that fits. */
static bool take_option(struct view_options *options, int option, const char *argument)
{
    switch (option) {
    case 'p':
        return parse_port(argument, &options->port);
    case 'g':
        options->needs_grpc = true;
        return parse_port(argument, &options->grpc_port);
    case 'f':
        options->form = VIEW_LINES;
        return true;
    case 'j':
        options->json = true;
        return true;
    case 'd':
        options->discard = true;
        return true;
    case 'a':
        options->all = true;
        return true;
    case 's':
        options->filter.service = argument;
        return true;
    case 'n':
        options->filter.name = argument;
        return true;
    case 'e':
        options->filter.error = true;
        return true;
    case 'l':
        return parse_milliseconds(argument, &options->filter.least_ns);
    case 'c':
        return parse_number(argument, UINT64_MAX, &options->count) && options->count != 0;
    default:
        return parse_number(argument, UINT32_MAX, &options->idle_exit_ms) &&
               options->idle_exit_ms != 0;
    }
}

/* Settle what depends on several options. Returns as view_options_parse. */
static int check(struct view_options *options, bool has_port)
{
    if (has_port && !options->needs_grpc)
        options->grpc_port = 0;
    if (!options->json && !options->discard)
        return -1;
    const bool chooses =
        options->form == VIEW_LINES || options->all || view_filter_is_set(&options->filter);
    if (options->discard && (chooses || options->json)) {
        fprintf(stderr, "otel-view: --discard looks into no span, so without --follow, --json, "
                        "--all, --service, --name, --error and --longer\n");
        return 2;
    }
    if (chooses) {
        fprintf(stderr, "otel-view: --json prints requests as they are, so without --follow, "
                        "--all, --service, --name, --error and --longer\n");
        return 2;
    }
    options->form = VIEW_NOTHING;
    return -1;
}

int view_options_parse(struct view_options *options, int argc, char **argv)
{
    static const struct option names[] = {{"port", required_argument, NULL, 'p'},
                                          {"grpc-port", required_argument, NULL, 'g'},
                                          {"follow", no_argument, NULL, 'f'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"discard", no_argument, NULL, 'd'},
                                          {"all", no_argument, NULL, 'a'},
                                          {"service", required_argument, NULL, 's'},
                                          {"name", required_argument, NULL, 'n'},
                                          {"error", no_argument, NULL, 'e'},
                                          {"longer", required_argument, NULL, 'l'},
                                          {"count", required_argument, NULL, 'c'},
                                          {"idle-exit", required_argument, NULL, 'i'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"version", no_argument, NULL, 'v'},
                                          {NULL, 0, NULL, 0}};
    bool has_port = false;
    *options = (struct view_options){.port = DEFAULT_PORT, .grpc_port = DEFAULT_GRPC_PORT};
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'h')
            return fputs(usage_text, stdout) < 0;
        if (option == 'v')
            return printf("otel-view %s\n", OTEL_VERSION) < 0;
        if (option == '?')
            return 2; /* getopt_long has said why */
        if (!take_option(options, option, optarg)) {
            fprintf(stderr, "otel-view: \"%s\" is no number that fits here\n", optarg);
            return 2;
        }
        has_port |= option == 'p';
    }
    if (optind < argc) {
        fprintf(stderr, "otel-view: there is no argument \"%s\"\n", argv[optind]);
        return 2;
    }
    return check(options, has_port);
}
