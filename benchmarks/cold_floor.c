/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/cold_floor.c - records of 96 bytes in a ring: cold_floor.h says what for. A library of
 * its own, so that each call goes the way that calls into otel-c go. */
#include "benchmarks/cold_floor.h"
#include "common/clock/counter.h"

enum { RECORDS = 8192 };

struct record {
    uint64_t trace_id[2];
    uint64_t span_id;
    uint64_t parent_id;
    uint64_t start;
    uint64_t end;
    const char *name;
    const char *keys[2];
    const char *string;
    int64_t integer;
    uint64_t reserved;
};

static struct record records[RECORDS];
static __thread struct {
    uint64_t at;
    uint64_t random;
} self = {0, 88172645463325252U};

void floor_enter(const char *name)
{
    struct record *record = &records[self.at % RECORDS];
    record->trace_id[0] = record->trace_id[1] = record->parent_id = self.at;
    record->span_id = floor_id(&self.random);
    record->name = name;
    record->start = oteli_counter();
}

void floor_set_string(const char *key, const char *value)
{
    struct record *record = &records[self.at % RECORDS];
    record->keys[0] = key;
    record->string = value;
}

void floor_set_int(const char *key, int64_t value)
{
    struct record *record = &records[self.at % RECORDS];
    record->keys[1] = key;
    record->integer = value;
}

void floor_end(void)
{
    records[self.at++ % RECORDS].end = oteli_counter();
}
