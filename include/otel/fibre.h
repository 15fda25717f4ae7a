/* SPDX-License-Identifier: Apache-2.0 */
/* otel/fibre.h - current contexts for coroutines and fibres, which share threads by turns.
 *
 * What is current belongs to a thread: attached contexts, entered spans, baggage. A fibre that
 * has an otel_stack has its own instead: the code that switches fibres exchanges the stacks as
 * well, and the fibre finds everything as it left it, on any thread.
 *
 *     otel_stack *before = otel_stack_switch(fibre->stack);
 *     resume(fibre);                                          runs until it yields or ends
 *     otel_stack_switch(before);
 *
 * Handles of spans that a fibre has entered, and tokens of contexts that it has attached, can be
 * used while it runs, as without fibres on their thread only.
 *
 * Threads:  any thread; a stack is current on one at a time. Works without an SDK.
 * Signals:  a handler may call otel_stack_current, and nothing else of this.
 * Cost:     a switch is some twenty loads and stores and one atomic exchange; it costs nothing
 *           where it is not used. A stack needs memory when a span is entered, or a context
 *           attached, on it for the first time: a kilobyte.
 * Errors:   none. A NULL stack is the thread's own.
 * Source:   otel-c's own: the specification leaves it to languages where a context is kept. */
#ifndef OTEL_FIBRE_H
#define OTEL_FIBRE_H

#include <otel/context.h>

OTEL_BEGIN_DECLS

typedef struct otel_stack otel_stack;

/* Make a stack with nothing on it; NULL: no memory. It lives until otel_stack_free. */
OTEL_API otel_stack *otel_stack_new(void);

/* Make a stack the calling thread's (NULL: its own). Returns the one that was so far, for the
 * way back. Where the stack is current on another thread nothing is exchanged, which is said in
 * the log. */
OTEL_API otel_stack *otel_stack_switch(otel_stack *stack);

/* The stack that is current on the calling thread; NULL: its own. */
OTEL_API otel_stack *otel_stack_current(void);

/* Free the stack of a fibre that has ended. Spans that are still open on its stack are dropped, and
 * counted as abandoned. The calling thread goes on with its own stack if this one is current on it;
 * one that is current on another thread stays, which is said in the log. */
OTEL_API void otel_stack_free(otel_stack *stack);

OTEL_END_DECLS
#endif
