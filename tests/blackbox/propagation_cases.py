# SPDX-License-Identifier: Apache-2.0
"""Headers that go into the program in the middle (programs/middle.c), and what has to come out of it.

A case says the propagators, the lines of the request as they are on the wire, and the context that
arrives downstream: the trace id (NEW: another one), whether it is sampled, the tracestate, and the
baggage. Both suites of neighbours go through this table: propagation_test.py, which speaks HTTP by
itself, and propagation_peers_test.py, whose neighbours are other SDKs.
"""
import dataclasses
import random
import string
import urllib.parse

T = "0af7651916cd43dd8448eb211c80319c"
S = "b7ad6b7169203331"
NEW = None
W3C = "tracecontext,baggage"


@dataclasses.dataclass
class Case:
    name: str
    lines: list
    form: str = W3C
    trace: str = T
    sampled: bool = True
    tracestate: str = ""
    baggage: dict = dataclasses.field(default_factory=dict)
    metadata: dict = dataclasses.field(default_factory=dict)


def parent(flags="01", before="", after=""):
    return ("traceparent", f"{before}00-{T}-{S}-{flags}{after}")


def states(count):
    return [f"k{i:02d}=v{i}" for i in range(count)]


def entries(count):
    return {f"k{i:02d}": f"v{i}" for i in range(count)}


def joined(members):
    return ",".join(members)


def members(items):
    return [f"{name}={value}" for name, value in items.items()]


TRACE_CONTEXT = [
    Case("sampled", [parent()]),
    Case("not sampled", [parent("00")], sampled=False),
    Case("nothing", [], trace=NEW),
    Case("blanks", [parent(before="  \t", after=" \t")]),
    Case("other case of the name", [("TraceParent", parent()[1]), ("TRACESTATE", "a=1")],
         tracestate="a=1"),
    Case("a later version", [("traceparent", f"cc-{T}-{S}-01-more")]),
    Case("capital digits", [("traceparent", f"00-{T.upper()}-{S}-01")], trace=NEW),
    Case("zeros", [("traceparent", f"00-{'0' * 32}-{S}-01"), ("tracestate", "a=1")], trace=NEW),
    Case("too long", [parent(after="-00")], trace=NEW),
    Case("two that differ", [parent(), parent("00")], trace=NEW),
    Case("twice the same", [parent(), parent()]),
    Case("tracestate", [parent(), ("tracestate", "b=2,a=1")], tracestate="b=2,a=1"),
    Case("tracestate with blanks", [parent(), ("tracestate", " \ta=1 ,\t b=2 \t, ,c=3 ")],
         tracestate="a=1,b=2,c=3"),
    Case("tracestate in lines", [parent(), ("tracestate", "a=1"), ("tracestate", ""),
         ("tracestate", " b=2, c=3")],
         tracestate="a=1,b=2,c=3"),
    Case("32 members", [parent(), ("tracestate", joined(states(32)))],
         tracestate=joined(states(32))),
    Case("32 members in lines", [parent()] + [("tracestate", state) for state in states(32)],
         tracestate=joined(states(32))),
    Case("32 members, one empty line", [parent(),
         ("tracestate", "")] + [("tracestate", s) for s in states(32)],
         tracestate=joined(states(32))),
    Case("33 members", [parent(), ("tracestate", joined(states(33)))]),
    Case("33 members in lines", [parent()] + [("tracestate", state) for state in states(33)]),
    Case("one bad member of tracestate", [parent(), ("tracestate", "a=1,B=2,c=3")]),
    Case("tracestate alone", [("tracestate", "a=1")], trace=NEW),
]

LARGE = {f"k{i}": "x" * 1020 for i in range(8)}  # 8 * 1,023 and seven commas

BAGGAGE = [
    Case("baggage", [parent(), ("baggage", "user=alice,cart=%C3%A9t%C3%A9")],
         baggage={"user": "alice", "cart": "été"}),
    Case("baggage without a trace", [("baggage", "user=alice")], trace=NEW,
         baggage={"user": "alice"}),
    Case("baggage of an unsampled trace", [parent("00"), ("baggage", "user=alice")], sampled=False,
         baggage={"user": "alice"}),
    Case("baggage with blanks", [parent(), ("baggage", "\t user = alice \t,  ,b\t=\t2 ")],
         baggage={"user": "alice", "b": "2"}),
    Case("baggage in lines", [parent(), ("baggage", "a=1"), ("baggage", ""),
         ("baggage", " b=2,c=3 ")],
         baggage={"a": "1", "b": "2", "c": "3"}),
    Case("64 members", [parent(), ("baggage", joined(members(entries(64))))], baggage=entries(64)),
    Case("64 members in lines, one empty", [parent(),
         ("baggage", "")] + [("baggage", m) for m in members(entries(64))],
         baggage=entries(64)),
    Case("64 of 65 members", [parent(), ("baggage", joined(members(entries(65))))],
         baggage=entries(64)),
    Case("8,191 bytes", [parent(), ("baggage", joined(members(LARGE)))], baggage=LARGE),
    Case("8,191 bytes with blanks", [parent()] + [("baggage", f"\t {m} \t ") for m in members(LARGE)], baggage=LARGE),
    Case("bytes beyond 8,192", [parent(), ("baggage", joined(members(LARGE)) + ",more=x")],
         baggage=LARGE),
    Case("one bad member of baggage", [parent(), ("baggage", "a=1,b(=2,novalue,c=3")],
         baggage={"a": "1", "c": "3"}),
    Case("metadata", [parent(), ("baggage", "a=1 ; p = 2 ;q , b=2;100%")],
         baggage={"a": "1", "b": "2"},
         metadata={"a": "p=2;q", "b": "100%25"}),
]

B3 = [
    Case("b3 accepts", [("b3", f"{T}-{S}-1")], form="b3"),
    Case("b3 denies", [("b3", f"{T}-{S}-0")], form="b3", sampled=False),
    Case("b3 with blanks", [("b3", f" \t{T}-{S}-1 \t")], form="b3"),
    Case("b3 leaves it open", [("b3", f"{T}-{S}")], form="b3"),
    Case("b3 of 64 bits", [("b3", f"{T[16:]}-{S}-1")], form="b3", trace="0" * 16 + T[16:]),
    Case("b3 malformed", [("b3", f"{T}-{S}-q")], form="b3", trace=NEW),
    Case("several", [("X-B3-TraceId", T), ("X-B3-SpanId", S), ("X-B3-Sampled", "1")],
         form="b3multi"),
    Case("several with blanks", [("X-B3-TraceId", f" {T} "), ("X-B3-SpanId", f"\t{S} "),
         ("X-B3-Sampled", "1 ")],
         form="b3multi"),
    Case("several deny", [("X-B3-TraceId", T), ("X-B3-SpanId", S), ("X-B3-Sampled", "0\t")],
         form="b3multi",
         sampled=False),
    Case("several leave it open", [("X-B3-TraceId", T), ("X-B3-SpanId", S)], form="b3multi"),
    Case("several malformed", [("X-B3-TraceId", T), ("X-B3-SpanId", S), ("X-B3-Sampled", "a")],
         form="b3multi", trace=NEW),
]

JAEGER = [
    Case("uber-trace-id", [("uber-trace-id", f"{T}:{S}:0:1")], form="jaeger"),
    Case("uber-trace-id with blanks", [("uber-trace-id", f"\t {T}:{S}:0:1 \t")], form="jaeger"),
    Case("uber-trace-id not sampled", [("uber-trace-id", f"{T}:{S}:0:0")], form="jaeger",
         sampled=False),
    Case("uber-trace-id with an odd parent", [("uber-trace-id", f"{T}:{S}:parent:1")],
         form="jaeger"),
    Case("uberctx", [("uber-trace-id", f"{T}:{S}:0:1"), ("uberctx-user", " alice%20b ")],
         form="jaeger",
         baggage={"user": "alice b"}),
]


# --- by chance ---

# Without what the Python SDK reads and writes as form data: blanks and pluses; and without semicolons.
VALUES = "".join(c for c in string.printable[:-6] if c not in " +;") + "äßñ€漢🙂"


def by_chance(dice, form):
    """A context of any ids and flags, with any tracestate and baggage that this form carries."""
    def text(alphabet, least, most):
        return "".join(dice.choices(alphabet, k=dice.randint(least, most)))

    trace = f"{dice.choice([dice.getrandbits(128), dice.getrandbits(64), 1]) or 1:032x}"
    flags = dice.getrandbits(8)
    sampled, tracestate, baggage = flags & 1 == 1, "", {}
    if form == W3C:
        state = {text(string.ascii_lowercase, 1, 1) + text(string.ascii_lowercase + "019_-*/", 0, 6):
                 text([chr(c) for c in range(0x21, 0x7f) if c not in b",="], 1, 8)
                 for _ in range(dice.choice([0, 1, 2, 5, 32]))}
        tracestate = joined(members(state))
    if form in (W3C, "jaeger"):  # whose names become headers
        names = string.ascii_lowercase + string.digits + "-" + ("AZ_.~" if form == W3C else "")
        baggage = {text(names, 1, 8): text(VALUES, 1, 12) for _ in range(dice.choice([0, 1, 3, 10]))}
    quoted = {name: urllib.parse.quote(value, safe="") for name, value in baggage.items()}
    lines = {
        W3C: [("traceparent", f"00-{trace}-{S}-{flags:02x}"), ("tracestate", tracestate),
              ("baggage", joined(members(quoted)))],
        "b3": [("b3", f"{trace}-{S}-{flags & 1}")],
        "b3multi": [("X-B3-TraceId", trace), ("X-B3-SpanId", S), ("X-B3-Sampled", flags & 1)],
        "jaeger": [("uber-trace-id", f"{trace}:{S}:0:{flags & 1}")] + [
            (f"uberctx-{name}", value) for name, value in quoted.items()],
    }[form]
    return Case(f"by chance: {lines}", lines, form, trace, sampled, tracestate, baggage)


FORMS = [W3C, "b3", "b3multi", "jaeger"]
DICE = random.Random(1)
CASES = TRACE_CONTEXT + BAGGAGE + B3 + JAEGER + [
    by_chance(DICE, form) for form in FORMS for _ in range(100 if form == W3C else 25)]
