/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_values.h - an attribute of a decoded request as text for people. */
#ifndef VIEW_VALUES_H
#define VIEW_VALUES_H

#include "exporters/console/safe_text.h"
#include "opentelemetry/proto/common/v1/common.pb-c.h"

/* Append "key=value"; lists as [1, 2], maps as {a=1, b=2}, bytes in hex. Stops somewhere
 * behind OTELI_RENDER_TEXT_MAX bytes, because nobody shows more. */
void view_describe_attribute(struct oteli_text *text,
                             const Opentelemetry__Proto__Common__V1__KeyValue *attribute);

#endif
