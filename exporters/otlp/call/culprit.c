/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/culprit.c - the contracts are in exporters/otlp/call/culprit.h. Exporter
 * thread. */
#include "exporters/otlp/call/culprit.h"

#define PERIOD_NS UINT64_C(60000000000)

enum {
    HALVINGS = 128, /* in a period: about a dozen bad spans in batches of 512 */
    FRUITLESS = 3   /* bad spans in a row that say that all are */
};

bool oteli_culprit_halve(struct oteli_culprit *culprit, size_t spans, uint64_t now_ns)
{
    if (now_ns >= culprit->period_end_ns)
        *culprit = (struct oteli_culprit){.period_end_ns = now_ns + PERIOD_NS,
                                          .halvings = HALVINGS,
                                          .is_looking = culprit->is_looking};
    if (spans < 2) {
        culprit->fruitless += culprit->is_looking;
        return false;
    }
    if (culprit->fruitless == FRUITLESS)
        culprit->halvings = 0;
    if (culprit->halvings == 0)
        return false;
    culprit->halvings--;
    culprit->is_looking = true;
    return true;
}

void oteli_culprit_accepted(struct oteli_culprit *culprit)
{
    culprit->fruitless = 0;
    culprit->is_looking = false;
}
