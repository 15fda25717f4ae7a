/* SPDX-License-Identifier: Apache-2.0 */
/* common/lent.h - marks what one library of ours lends to another: exported under the
 * symbol version OTEL_PRIVATE, and for nobody else. */
#ifndef OTELI_LENT_H
#define OTELI_LENT_H

#define OTELI_LENT __attribute__((visibility("default")))

#endif
