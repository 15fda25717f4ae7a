/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/internal_api.h - marks what one library of ours lends to another: exported under a
 * symbol version that has the full version of otel-c in it, so that the loader refuses to mix
 * libraries of different versions. Variables of the hot path are marked as
 * not lent: then they are read without asking first where they are. */
#ifndef OTELI_INTERNAL_API_H
#define OTELI_INTERNAL_API_H

#define OTELI_INTERNAL_API __attribute__((visibility("default")))
#define OTELI_NOT_LENT __attribute__((visibility("hidden")))

#endif
