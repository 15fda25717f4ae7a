/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/schema.h - what may stand in a configuration file, as a table; and the walk that
 * holds a document against it.
 *
 * The walk goes through document and table side by side, and says all that is wrong in one pass.
 * After it, code that reads the document need not check anything.
 *
 * Threads:  any; the table is constant.
 * Source:   schema of opentelemetry-configuration, as of file_format "1.1" and what has been
 *           added to it since: max_request_size, max_response_size,
 *           attribute_value_depth_limit, always_record. */
#ifndef OTELI_SCHEMA_H
#define OTELI_SCHEMA_H

#include "config/read/document.h"

#include <otel/config.h>

enum oteli_shape {
    OTELI_SHAPE_ANY, /* not looked at */
    OTELI_SHAPE_BOOL,
    OTELI_SHAPE_INT,   /* from min to max */
    OTELI_SHAPE_RATIO, /* a number from 0 to 1 */
    OTELI_SHAPE_TEXT,
    OTELI_SHAPE_WORD,   /* one of `words` */
    OTELI_SHAPE_SCALAR, /* whatever stands there, as text */
    OTELI_SHAPE_VALUE,  /* of an attribute: a scalar, or a list of scalars */
    OTELI_SHAPE_LIST,   /* of one or more elements */
    OTELI_SHAPE_MAP,
    OTELI_SHAPE_CHOICE /* a mapping with exactly one of the properties */
};

struct oteli_schema {
    enum oteli_shape shape;
    bool may_be_null;
    bool may_have_more;   /* MAP: unknown keys are a warning */
    bool may_have_others; /* MAP: unknown keys are for other programs, and not read */
    int64_t min, max;
    const char *words;                  /* space separated */
    const char *what;                   /* CHOICE, for messages: "sampler" */
    otel_component_type component;      /* CHOICE: names of this type may be registered; 0: none */
    const struct oteli_schema *element; /* LIST */
    const struct oteli_property *properties; /* MAP, CHOICE; ended by a key that is NULL */
    /* What words cannot say: NULL, or the end of a sentence that begins with the path. For
     * values that are not null. */
    const char *(*check)(const struct oteli_node *node);
    /* The same for what is allowed, but will not be done: a warning. */
    const char *(*doubt)(const struct oteli_node *node);
};

enum {
    OTELI_REQUIRED = 1,
    OTELI_NOT_HERE = 2,   /* belongs to the specification, but not to this build */
    OTELI_NOT_TRACES = 4, /* of another signal: not looked at, with a warning */
};

struct oteli_property {
    const char *key;
    const struct oteli_schema *schema;
    unsigned flags;
};

/* A whole file. */
extern const struct oteli_schema oteli_schema_file;

/* Say everything in which a document differs from a schema. */
void oteli_schema_check(const struct oteli_node *root, const struct oteli_schema *schema,
                        struct oteli_file *file);

/* config/read/check.c: the rules of single values, for the table. */
const char *oteli_check_file_format(const struct oteli_node *node);
const char *oteli_doubt_file_format(const struct oteli_node *node);
const char *oteli_check_endpoint(const struct oteli_node *node);
const char *oteli_check_grpc_endpoint(const struct oteli_node *node);
const char *oteli_check_tls(const struct oteli_node *node);
const char *oteli_check_header(const struct oteli_node *node);
const char *oteli_check_headers_list(const struct oteli_node *node);
const char *oteli_check_output_stream(const struct oteli_node *node);
const char *oteli_check_attribute(const struct oteli_node *node);
const char *oteli_check_not_empty(const struct oteli_node *node);

#endif
