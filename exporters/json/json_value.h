/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/json_value.h - attributes and their values as JSON.
 *
 * Two forms: OTLP's, in which each value says of which type it is, and the plain one, for
 * people and for viewers that know JSON and nothing else:
 *
 *     {"intValue":"3"}                                             3
 *     {"arrayValue":{"values":[{"stringValue":"a"},{}]}}           ["a",null]
 *     {"kvlistValue":{"values":[{"key":"k","value":{}}]}}          {"k":null}
 *     {"bytesValue":"AAE="}                                        "AAE="
 *
 * Source: opentelemetry-proto docs/specification.md "JSON Protobuf Encoding". */
#ifndef OTELI_JSON_VALUE_H
#define OTELI_JSON_VALUE_H

#include "exporters/json/json_text.h"

/* Arrays and maps in each other, at most; what is deeper becomes an empty value. */
enum { OTELI_JSON_VALUE_DEPTH = 128 };

enum oteli_json_form {
    OTELI_JSON_OTLP,
    OTELI_JSON_PLAIN /* an integer that a double cannot hold becomes a string */
};

void oteli_json_add_value(struct oteli_text *json, const otel_value_view *value,
                          enum oteli_json_form form);

/* OTLP: the elements of a list of KeyValue. Plain: the members of an object. Without the
 * brackets around them, and with commas between them. */
void oteli_json_add_attributes(struct oteli_text *json, otel_slice attributes, uint32_t field,
                               enum oteli_json_form form);

#endif
