/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/check.c - the rules of single values that the table cannot write down; see schema.h.
 * Each answers NULL, or the end of a sentence that begins with the path of the value. Any
 * thread. */
#include "config/read/schema.h"

#include "common/text/text.h"
#include "exporters/otlp/endpoint.h"
#include <stdlib.h>

enum { FORMAT_MAJOR = 1, FORMAT_MINOR = 1 };

/* --- file_format --- */

/* "1.0": two numbers and a dot between them. */
static bool read_format(const char *text, int64_t *major, int64_t *minor)
{
    otel_slice before, behind;
    return oteli_cut(oteli_slice_of(text), '.', &before, &behind) &&
           oteli_parse_whole(before, major) && oteli_parse_whole(behind, minor);
}

const char *oteli_check_file_format(const struct oteli_node *node)
{
    int64_t major, minor;
    if (!read_format(node->text, &major, &minor))
        return "is no version that has been released, such as \"1.1\"";
    return major != FORMAT_MAJOR ? "is not a version 1, the only one that is understood" : NULL;
}

const char *oteli_doubt_file_format(const struct oteli_node *node)
{
    int64_t major, minor;
    if (read_format(node->text, &major, &minor) && minor > FORMAT_MINOR)
        return "is newer than \"1.1\"; what is new in it is not understood";
    return NULL;
}

/* --- Exporters --- */

static bool is_endpoint(otel_otlp_protocol protocol, const char *text)
{
    char *endpoint = NULL;
    const bool is_good = oteli_otlp_endpoint(OTELI_SIGNAL_TRACES, protocol, NULL, text, &endpoint);
    free(endpoint);
    return is_good;
}

const char *oteli_check_endpoint(const struct oteli_node *node)
{
    return is_endpoint(OTEL_OTLP_HTTP_PROTOBUF, node->text) ? NULL : "is no http or https URL";
}

const char *oteli_check_grpc_endpoint(const struct oteli_node *node)
{
    return is_endpoint(OTEL_OTLP_GRPC, node->text) ? NULL
                                                   : "is neither a URL nor a host with a port";
}

const char *oteli_check_tls(const struct oteli_node *node)
{
    const bool has_key = oteli_node_value(node, "key_file") != NULL;
    const bool has_certificate = oteli_node_value(node, "cert_file") != NULL;
    return has_key != has_certificate ? "has only one of key_file and cert_file" : NULL;
}

/* The values may be secrets: they are not shown. */
const char *oteli_check_headers_list(const struct oteli_node *node)
{
    return oteli_otlp_headers_are_pairs(node->text) ? NULL : "has an entry that is not name=value";
}

/* The value may be a secret: it is not shown. */
const char *oteli_check_header(const struct oteli_node *node)
{
    const struct oteli_node *name = oteli_node_value(node, "name");
    const struct oteli_node *value = oteli_node_value(node, "value");
    if (name != NULL && name->kind == OTELI_NODE_TEXT &&
        !oteli_is_token(name->text, strlen(name->text)))
        return "has a name that cannot be that of a header";
    for (size_t i = 0; value != NULL && i < value->length; i++)
        if (((uint8_t)value->text[i] < 0x20 && value->text[i] != '\t') || value->text[i] == 0x7F)
            return "has a value with a line break or another control character";
    return NULL;
}

const char *oteli_check_output_stream(const struct oteli_node *node)
{
    static const char scheme[] = "file:///";
    if (strcmp(node->text, "stdout") == 0)
        return NULL;
    if (strncmp(node->text, scheme, sizeof scheme - 1) == 0 &&
        node->text[sizeof scheme - 1] != '\0')
        return NULL;
    return "is neither stdout nor file:// and an absolute path";
}

/* --- Resource --- */

const char *oteli_check_not_empty(const struct oteli_node *node)
{
    return node->length == 0 ? "is empty" : NULL;
}

static bool has_kind(const struct oteli_node *node, enum oteli_node_kind kind)
{
    return node->kind == kind || (kind == OTELI_NODE_FLOAT && node->kind == OTELI_NODE_INT);
}

/* "The type of value must match .type." */
const char *oteli_check_attribute(const struct oteli_node *node)
{
    static const struct {
        const char *type;
        enum oteli_node_kind kind;
        bool is_array;
    } types[] = {
        {"string", OTELI_NODE_TEXT, false},      {"bool", OTELI_NODE_BOOL, false},
        {"int", OTELI_NODE_INT, false},          {"double", OTELI_NODE_FLOAT, false},
        {"string_array", OTELI_NODE_TEXT, true}, {"bool_array", OTELI_NODE_BOOL, true},
        {"int_array", OTELI_NODE_INT, true},     {"double_array", OTELI_NODE_FLOAT, true},
    };
    const struct oteli_node *type = oteli_node_value(node, "type");
    const struct oteli_node *value = oteli_node_value(node, "value");
    if (value == NULL || value->kind == OTELI_NODE_MAPPING)
        return NULL;
    const char *wanted = type != NULL && type->kind == OTELI_NODE_TEXT ? type->text : "string";
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(wanted, types[i].type) != 0)
            continue;
        bool is_good =
            types[i].is_array ? value->kind == OTELI_NODE_SEQUENCE : has_kind(value, types[i].kind);
        for (const struct oteli_item *item = value->items; item != NULL; item = item->next)
            is_good = is_good && has_kind(item->value, types[i].kind);
        return is_good ? NULL : "has a value that is not of its type (string, if none is given)";
    }
    return NULL;
}
