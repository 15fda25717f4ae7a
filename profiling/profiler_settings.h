/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_settings.h - the words of the OTEL_C_PROFILER settings, as the profiler's
 * values.
 *
 * The configuration has checked the words before (common/config/config_table.h), in lower case.
 *
 * Threads:  any; start/stop in practice. */
#ifndef OTELI_PROFILER_SETTINGS_H
#define OTELI_PROFILER_SETTINGS_H

#include <otel/profiler.h>

/* "on" and "auto" are the same. false: the word is "off", or none that there is; *source is as it
 * was. */
bool oteli_profiler_source_of_word(const char *word, otel_profiler_source *source);

/* OTEL_PPROF_OTEL for a word that there is not, and for NULL. */
otel_pprof_style oteli_pprof_style_of_word(const char *word);

/* "on" and "off"; what the exporter wants, by itself, for all else. */
bool oteli_profiler_names_of_word(const char *word, bool by_itself);

#endif
