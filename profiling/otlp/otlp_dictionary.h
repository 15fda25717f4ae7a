/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_dictionary.h - the ProfilesDictionary of one request: the tables of a profile
 * (profile_model.h) as OTLP has them. A row comes to be when a sample asks for it, so there is none
 * that nothing refers to, and none twice: what makes two rows equal is that they are encoded
 * equally, so that a row that refers to rows of other tables is equal to another by what it says,
 * all the way down.
 *
 * Threads:  one thread at a time.
 * Source:   opentelemetry-proto, profiles.proto; specification, profiles/mappings.md; semantic
 *           conventions, general/profiles.md and attributes of threads and processes. */
#ifndef OTELI_OTLP_DICTIONARY_H
#define OTELI_OTLP_DICTIONARY_H

#include "profiling/profile/profile_model.h"
#include "profiling/profile/protobuf_writer.h"

/* Fields of the message, and their tables. */
enum oteli_otlp_rows {
    OTELI_OTLP_MAPPINGS = 1,
    OTELI_OTLP_LOCATIONS,
    OTELI_OTLP_FUNCTIONS,
    OTELI_OTLP_LINKS,
    OTELI_OTLP_STRINGS,
    OTELI_OTLP_ATTRIBUTES,
    OTELI_OTLP_STACKS,
    OTELI_OTLP_TABLES
};

struct oteli_otlp_dictionary {
    struct oteli_interner tables[OTELI_OTLP_TABLES];
    struct oteli_protobuf_writer row; /* while it is put together; without memory it has failed */
    const otel_profile *profile;
    uint32_t *known; /* 1 + row of each mapping, location and stack of the profile; 0: not yet */
};

/* A table with the empty row, which is number 0 of every table. false: no memory. */
bool oteli_otlp_table_init(struct oteli_interner *table);

/* For this profile, which stays as it is. false: no memory. fini in any case. */
bool oteli_otlp_dictionary_init(struct oteli_otlp_dictionary *dictionary,
                                const otel_profile *profile);
void oteli_otlp_dictionary_fini(struct oteli_otlp_dictionary *dictionary);

/* Rows, by the numbers of the model. After `row.has_failed` they mean nothing. */
uint32_t oteli_otlp_dictionary_text(struct oteli_otlp_dictionary *dictionary, const char *text);
uint32_t oteli_otlp_dictionary_stack(struct oteli_otlp_dictionary *dictionary, uint32_t stack);
uint32_t oteli_otlp_dictionary_link(struct oteli_otlp_dictionary *dictionary, uint32_t link);
uint32_t oteli_otlp_dictionary_number(struct oteli_otlp_dictionary *dictionary, const char *key,
                                      uint64_t value);
uint32_t oteli_otlp_dictionary_attribute(struct oteli_otlp_dictionary *dictionary, const char *key,
                                         const char *value);

#endif
