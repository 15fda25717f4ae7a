/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/counter.h - read the processor's counter, whatever it is worth: common/clock/clock.h
 * knows whether it can be trusted; without a counter it is never read. Any thread.
 *
 * Source: Intel SDM 17.17 (RDTSC does not wait for earlier instructions, which is why it
 * hides the work around it), Arm ARM D13 (CNTVCT_EL0). */
#ifndef OTELI_COUNTER_H
#define OTELI_COUNTER_H

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t oteli_counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

#endif
