/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/detectors.c - which detector has which name: see detectors.h. Start/stop only. */
#include "sdk/resource/detectors.h"
#include "common/text/text.h"

#include <otel/semconv.h>

void oteli_detect(struct oteli_facts *facts, const char *list)
{
    static const struct {
        const char *name;
        void (*detect)(struct oteli_facts *facts);
    } detectors[] = {
        {"process", oteli_detect_process},
        {"process_command", oteli_detect_process_command},
        {"process_owner", oteli_detect_process_owner},
        {"os", oteli_detect_os},
        {"host", oteli_detect_host},
        {"container", oteli_detect_container},
        {"service", oteli_detect_service},
    };
    otel_slice rest = oteli_slice_of(list);
    otel_slice word;
    while (oteli_list_next(&rest, &word))
        for (size_t i = 0; i < sizeof detectors / sizeof detectors[0]; i++)
            if (oteli_is_word(word, detectors[i].name)) {
                struct oteli_facts found = {0};
                detectors[i].detect(&found);
                found.schema_url = found.count != 0 ? OTEL_SEMCONV_SCHEMA_URL : NULL;
                oteli_facts_merge(facts, &found);
            }
}
