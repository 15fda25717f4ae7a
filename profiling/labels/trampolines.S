/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines.S - the block of trampolines for the processor that this is built for, if
 * there is one. It is one object: one more without a note about protected control flow would switch
 * that protection off for the program. */
#include "profiling/labels/trampolines_aarch64.S"
#include "profiling/labels/trampolines_x86_64.S"

#if defined(__arm__)
    .section .note.GNU-stack, "", %progbits
#else
    .section .note.GNU-stack, "", @progbits
#endif
