/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_dictionary.h - the ProfilesDictionary of one request: the tables of a profile
 * (profile_model.h) as OTLP has them. A row comes to be when a sample asks for it, so there is none
 * that nothing refers to, and none twice.
 *
 * Texts that are not UTF-8 get U+FFFD for what is bad in them.
 *
 * Threads:  one thread at a time. Memory is kept until fini.
 * Source:   opentelemetry-proto, profiles.proto; specification, profiles/mappings.md; semantic
 *           conventions, general/profiles.md and attributes of threads and processes. */
#ifndef OTELI_OTLP_DICTIONARY_H
#define OTELI_OTLP_DICTIONARY_H

#include "profiling/otlp/otlp_table.h"
#include "profiling/profile/profile_model.h"

enum { OTELI_SAMPLE_ATTRIBUTES = 64 }; /* of a sample; what is above it is left out */

struct oteli_otlp_dictionary {
    struct oteli_otlp_table mappings;
    struct oteli_otlp_table locations;
    struct oteli_otlp_table functions;
    struct oteli_otlp_table links;
    struct oteli_otlp_table strings;
    struct oteli_otlp_table attributes;
    struct oteli_otlp_table stacks;
    bool failed; /* no memory */

    const otel_profile *profile;
    uint32_t *known; /* 1 + row of each mapping, location and stack of the profile; 0: not yet */
    size_t known_room;
    uint8_t *scratch; /* a row while it is put together */
    size_t scratch_room;
};

/* For this profile, which stays as it is. false: no memory. */
bool oteli_otlp_dictionary_begin(struct oteli_otlp_dictionary *dictionary,
                                 const otel_profile *profile);
void oteli_otlp_dictionary_fini(struct oteli_otlp_dictionary *dictionary);

/* Rows, by the numbers of the model. After `failed` they mean nothing. */
uint32_t oteli_otlp_dictionary_text(struct oteli_otlp_dictionary *dictionary, const char *text);
uint32_t oteli_otlp_dictionary_stack(struct oteli_otlp_dictionary *dictionary, uint32_t stack);
uint32_t oteli_otlp_dictionary_link(struct oteli_otlp_dictionary *dictionary, uint32_t link);

/* Those of a sample in ascending order, each key once; gives how many. What is known of the thread
 * goes before labels that say the same. */
size_t oteli_otlp_dictionary_attributes(struct oteli_otlp_dictionary *dictionary,
                                        const struct oteli_profile_sample *sample,
                                        uint32_t attributes[OTELI_SAMPLE_ATTRIBUTES]);

/* As a ProfilesDictionary message. */
size_t oteli_otlp_dictionary_size(const struct oteli_otlp_dictionary *dictionary);
uint8_t *oteli_otlp_dictionary_write(uint8_t *at, const struct oteli_otlp_dictionary *dictionary);

#endif
