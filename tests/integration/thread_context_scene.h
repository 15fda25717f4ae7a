/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/thread_context_scene.h - what a process does while it is read from outside.
 *
 * At each point it stands still: it writes a line to its output, and goes on when it reads one.
 *
 *     POINT PROCESS SERVICE STATUS [THREAD:TRACE:SPAN:FLAGS|THREAD:none]...
 *
 * SERVICE is what the process's context has to say it is, or "none"; STATUS is what
 * otel_thread_context_selftest answers. Then come the threads, and what each of them is working
 * for. The last line is "done".
 *
 * Threads:  the one that calls it, and some that it starts. */
#ifndef OTELI_TESTS_THREAD_CONTEXT_SCENE_H
#define OTELI_TESTS_THREAD_CONTEXT_SCENE_H

typedef int thread_context_scene_function(void);

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
thread_context_scene_function thread_context_scene;

#endif
