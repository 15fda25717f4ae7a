#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Headers that otel-c writes are read by OpenTelemetry's Python SDK, and the reverse.

usage: propagation.py PATH-OF-HEADERS [CONTEXTS [SEED]]

A context of any kind (all flags, tracestates of up to 32 members, baggage in any UTF-8, with
metadata) is injected by one side, extracted by the other, and compared. What the two are known
to do differently, and why, stands at the functions that allow for it (`python_…`).
"""
import os
import random
import string
import sys
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402

from opentelemetry import baggage, trace  # noqa: E402
from opentelemetry.baggage.propagation import W3CBaggagePropagator  # noqa: E402
from opentelemetry.context import Context  # noqa: E402
from opentelemetry.propagators.b3 import B3MultiFormat, B3SingleFormat  # noqa: E402
from opentelemetry.propagators.jaeger import JaegerPropagator  # noqa: E402
from opentelemetry.trace.propagation.tracecontext import (  # noqa: E402
    TraceContextTextMapPropagator)

FORMATS = {
    "tracecontext": TraceContextTextMapPropagator(),
    "baggage": W3CBaggagePropagator(),
    "b3": B3SingleFormat(),
    "b3multi": B3MultiFormat(),
    "jaeger": JaegerPropagator(),
}
TOKEN = string.ascii_letters + string.digits + "!#$&'*-.^_`|~"
TEXT = string.printable[:-6] + "äöüßéñ€漢字🙂\u00a0"


class Made:
    """A context, as both sides are told it."""

    def __init__(self, dice):
        self.trace_id = dice.choice([dice.getrandbits(128), dice.getrandbits(64), 1]) or 1
        self.span_id = dice.choice([dice.getrandbits(64), 1]) or 1
        self.flags = dice.getrandbits(8)
        self.tracestate = make_tracestate(dice)
        self.baggage = make_baggage(dice)


def make_tracestate(dice):
    members = {}
    for _ in range(dice.choice([0, 0, 1, 2, 5, 32])):
        key = dice.choice(string.ascii_lowercase)
        key += "".join(dice.choices(string.ascii_lowercase + string.digits + "_-*/",
                                    k=dice.randrange(6)))
        value = "".join(dice.choices([chr(c) for c in range(0x20, 0x7f) if c not in b",="],
                                     k=dice.randrange(1, 8))).rstrip()
        if value:
            members[key] = value
    return ",".join(f"{key}={value}" for key, value in members.items())


def make_baggage(dice):
    entries = {}
    for _ in range(dice.choice([0, 1, 1, 3, 10, 60])):
        name = "".join(dice.choices(TOKEN, k=dice.randrange(1, 8)))
        value = "".join(dice.choices(TEXT, k=dice.randrange(0, 12)))
        metadata = dice.choice(["", "", "", "p", "p=1;q"])
        if name.lower() not in (other.lower() for other in entries):  # they become headers
            entries[name] = (value, metadata)
    return entries


def python_reads(value):
    """It decodes form data: a plus, which W3C Baggage leaves alone, is a blank to it, and
    blanks at the ends are no part of a value, even where they were percent-encoded."""
    return value.replace("+", " ").strip()


def python_writes(value):
    """It encodes form data: a blank is a plus, which is a plus to everybody else."""
    return value.replace(" ", "+")


def python_names(name):
    """It percent-encodes names too, which are tokens that nobody else decodes."""
    return urllib.parse.quote_plus(name)


# --- from otel-c to the peer ---


def ask_to_inject(made, form):
    words = ["inject", form, f"{made.trace_id:032x}", f"{made.span_id:016x}",
             f"{made.flags:02x}", peers.encode(made.tracestate)]
    for name, (value, metadata) in made.baggage.items():
        words += [peers.encode(name), peers.encode(value), peers.encode(metadata)]
    return words


def headers_of(answer):
    return {peers.decode(name): peers.decode(value)
            for name, value in zip(answer[::2], answer[1::2])}


def check_injected(found, form, made, headers):
    context = FORMATS[form].extract({name: [value] for name, value in headers.items()},
                                    Context())
    if form != "baggage":
        span = trace.get_current_span(context).get_span_context()
        state = span.trace_state.to_header() if form == "tracecontext" else ""
        keeps_random = 2 if form == "tracecontext" else 0  # the others have no such flag
        found.compare(f"{form} {headers}",
                      (made.trace_id, made.span_id, made.flags & (1 | keeps_random), True,
                       made.tracestate if form == "tracecontext" else ""),
                      (span.trace_id, span.span_id, span.trace_flags, span.is_remote, state))
    if form in ("baggage", "jaeger"):
        # It takes metadata for a part of the value (W3C) or has no place for it (Jaeger).
        ours = {}
        for name, (value, metadata) in made.baggage.items():
            if form == "jaeger":
                ours[name] = value.strip()
            else:
                ours[name] = python_reads(value + (";" + metadata if metadata else ""))
        found.compare(f"{form} {headers}", ours, dict(baggage.get_all(context)))


# --- from the peer to otel-c ---


def inject_with_peer(made, form):
    span = trace.SpanContext(made.trace_id, made.span_id, False, trace.TraceFlags(made.flags),
                             trace.TraceState.from_header([made.tracestate]))
    context = trace.set_span_in_context(trace.NonRecordingSpan(span), Context())
    for name, (value, _) in made.baggage.items():
        context = baggage.set_baggage(name, value, context)
    headers = {}
    FORMATS[form].inject(headers, context)
    return headers


def ask_to_extract(form, headers):
    words = ["extract", form]
    for name, value in headers.items():
        words += [peers.encode(name), peers.encode(value)]
    return words


def check_extracted(found, form, made, answer, headers):
    if form != "baggage":
        # It writes W3C's flags into Jaeger's byte, where random is the debug flag.
        keeps_random = 2 if form == "tracecontext" else 0
        tracestate = made.tracestate if form == "tracecontext" else ""
        found.compare(f"{form} {headers}",
                      (answer[0], answer[1], int(answer[2], 16), peers.decode(answer[3])),
                      (f"{made.trace_id:032x}", f"{made.span_id:016x}",
                       made.flags & (1 | keeps_random), tracestate))
    if form in ("baggage", "jaeger"):
        ours = {peers.decode(name): peers.decode(value)
                for name, value in zip(answer[4::3], answer[5::3])}
        name_of, value_of = ((python_names, python_writes) if form == "baggage" else (str, str))
        theirs = {name_of(name): value_of(value) for name, (value, _) in made.baggage.items()}
        found.compare(f"{form} {headers}", ours, theirs)


# --- headers that are not what they should be ---

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ODD = {
    "tracecontext": [{"traceparent": value} for value in (
        f"00-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-", f"00-{TRACE}-{SPAN}-01-x",
        f"01-{TRACE}-{SPAN}-01-x", f"01-{TRACE}-{SPAN}-01", f"01-{TRACE}-{SPAN}-01x",
        f"ff-{TRACE}-{SPAN}-01", f"fe-{TRACE}-{SPAN}-01-", f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN.upper()}-01", f"0-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"00-{TRACE}-{SPAN}",
        f" \t00-{TRACE}-{SPAN}-01 ", f"00_{TRACE}_{SPAN}_01", "", "00", f"00-{TRACE[1:]}-{SPAN}-01", f"00-{TRACE}-{SPAN}0-01")],
    # It takes capital digits, nonsense as `not sampled`, and no decision as `sampled`.
    "b3": [{"b3": value} for value in (
        f"{TRACE}-{SPAN}-1", f"{TRACE}-{SPAN}-d", f"{TRACE}-{SPAN}-0",
        f"{TRACE}-{SPAN}-1-{SPAN}", f"{TRACE[16:]}-{SPAN}-1", f"{TRACE}-{SPAN[1:]}-1",
        f"{TRACE[1:]}-{SPAN}-1", TRACE, "0", "1", "d", "x", f"{TRACE}-")],
    "b3multi": [{"x-b3-traceid": trace_id, "x-b3-spanid": SPAN, **more}
                for trace_id in (TRACE, TRACE[16:], TRACE[1:])
                for more in ({"x-b3-sampled": "1"}, {"x-b3-sampled": "0"},
                             {"x-b3-sampled": "true"},
                             {"x-b3-flags": "1"}, {"x-b3-flags": "0"}, {})],
    # It does not decode colons.
    "jaeger": [{"uber-trace-id": value} for value in (
        f"{TRACE}:{SPAN}:0:1", f"{TRACE}:{SPAN}:0:0", f"{TRACE}:{SPAN}:0:3",
        f"{TRACE}:{SPAN}:{SPAN}:01", "1:2:0:1", f"{TRACE}:{SPAN}:0",
        f"{TRACE}:{SPAN}", "", f"0:{SPAN}:0:1", f"{TRACE}:0:0:1")],
}


def check_odd(found, program):
    cases = [(form, headers) for form, list_ in ODD.items() for headers in list_]
    answers = peers.Program(program).ask_all(
        [ask_to_extract(*case) for case in cases])
    for (form, headers), answer in zip(cases, answers):
        context = FORMATS[form].extract({name: [value] for name, value in headers.items()},
                                        Context())
        span = trace.get_current_span(context).get_span_context()
        found.compare(f"{form} {headers}",
                      (answer[0], answer[1], int(answer[2], 16)),
                      (f"{span.trace_id:032x}", f"{span.span_id:016x}", span.trace_flags & 3))


def main():
    program = sys.argv[1]
    dice = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    contexts = [Made(dice) for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 600)]
    found = peers.Differences()
    cases = [(form, made) for form in FORMATS for made in contexts]
    answers = peers.Program(program).ask_all([ask_to_inject(made, form) for form, made in cases])
    for (form, made), answer in zip(cases, answers):
        check_injected(found, form, made, headers_of(answer))
    sent = [inject_with_peer(made, form) for form, made in cases]
    answers = peers.Program(program).ask_all(
        [ask_to_extract(form, headers) for (form, _), headers in zip(cases, sent)])
    for (form, made), answer, headers in zip(cases, answers, sent):
        check_extracted(found, form, made, answer, headers)
    check_odd(found, program)
    found.finish(10 * len(contexts))


if __name__ == "__main__":
    main()
