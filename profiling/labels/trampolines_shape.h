/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines_shape.h - how the block of trampolines is laid out: numbers that the
 * assembler and the compiler share. */
#ifndef OTELI_TRAMPOLINES_SHAPE_H
#define OTELI_TRAMPOLINES_SHAPE_H

#define OTELI_TRAMPOLINE_COUNT 1024
#define OTELI_TRAMPOLINE_RECORD 16 /* the first word of a record is its address and this */

/* STRIDE is from one trampoline to the next; the marker is the address MARKER bytes into it. */
#if defined(__linux__) && defined(__x86_64__) && defined(__LP64__)
#define OTELI_HAS_TRAMPOLINES 1
#define OTELI_TRAMPOLINE_STRIDE 32
#define OTELI_TRAMPOLINE_MARKER 25
#elif defined(__linux__) && defined(__aarch64__) && defined(__LP64__) && defined(__AARCH64EL__)
#define OTELI_HAS_TRAMPOLINES 1
#define OTELI_TRAMPOLINE_STRIDE 64
#define OTELI_TRAMPOLINE_MARKER 36
#else
#define OTELI_HAS_TRAMPOLINES 0
#define OTELI_TRAMPOLINE_STRIDE 1
#define OTELI_TRAMPOLINE_MARKER 0
#endif

#endif
