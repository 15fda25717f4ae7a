/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/mount.c - the contracts are in api/record/mount.h. */
#include "api/record/mount.h"
#include "api/context/tracestate_pool.h"

void oteli_mount_discard(const struct oteli_mount *mount)
{
    oteli_tracestate_release(mount->tracestate);
    oteli_hold_leave(mount->lines);
}

void oteli_line_discard_mounts(struct oteli_line *line)
{
    const uint32_t committed = oteli_load_acquire_32(&line->committed);
    for (uint32_t at = oteli_load_relaxed_32(&line->consumed); at < committed;) {
        const struct oteli_record *record = oteli_line_record(line, at);
        at += record->size;
        if ((record->what & OTELI_RECORD_MOUNT) != 0)
            oteli_mount_discard(oteli_record_mount(record));
    }
    oteli_store_relaxed_32(&line->consumed, committed);
}
