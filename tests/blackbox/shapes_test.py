# SPDX-License-Identifier: Apache-2.0
"""Google's protobuf decodes every request, and what it decodes is what the program set, as text."""
import math
import re
import unittest

import harness


def show(value):
    kind = value.WhichOneof("value")
    if kind is None:
        return "empty"
    plain = getattr(value, kind)
    if kind == "array_value":
        return f"[{', '.join(map(show, plain.values))}]"
    if kind == "kvlist_value":
        return f"{{{show_pairs(plain.values)}}}"
    if kind == "bytes_value":
        return f"bytes:{plain.hex()}"
    if kind == "string_value":
        return repr(plain) if len(plain) < 100 else f"{len(plain)} times {''.join(sorted(set(plain)))!r}"
    if kind == "double_value":
        return "double nan" if math.isnan(plain) else f"double {plain}"
    return str(plain)


def show_pairs(pairs):
    return ", ".join(f"{pair.key}: {show(pair.value)}" for pair in pairs)


def show_span(span):
    lines = [f"{span.name!r} kind {span.kind}"]
    lines += [f"  {pair.key} = {show(pair.value)}" for pair in span.attributes]
    for event in span.events:
        at = event.time_unix_nano if event.time_unix_nano < 10**15 or event.time_unix_nano > 3 * 10**18 else "now"
        lines.append(f"  event {event.name!r} at {at} ({show_pairs(event.attributes)}) "
                     f"-{event.dropped_attributes_count}")
    for link in span.links:
        lines.append(f"  link {link.trace_id.hex()} {link.span_id.hex()} {link.trace_state!r} "
                     f"({show_pairs(link.attributes)}) -{link.dropped_attributes_count}")
    lines.append(f"  status {span.status.code} {span.status.message!r}")
    lines.append(f"  dropped {span.dropped_attributes_count} {span.dropped_events_count} "
                 f"{span.dropped_links_count}")
    return "\n".join(lines)


def nesting(value):
    """How many arrays and maps are in one another, and what is in the innermost."""
    depth = 0
    while value.WhichOneof("value") in ("array_value", "kvlist_value"):
        depth += 1
        inner = getattr(value, value.WhichOneof("value")).values[0]
        value = inner if value.HasField("array_value") else inner.value
    return depth, show(value)


class Shapes(unittest.TestCase):
    maxDiff = None
    kind = harness.Receiver

    def record(self, *cases, env=None):
        """The receiver after these cases; every request was decoded."""
        with self.kind() as receiver:
            done = harness.run("shapes", *cases, receiver=receiver, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(receiver.faults, [])
        return receiver

    def test_values_of_every_type(self):
        (span,) = self.record("values").spans()
        self.assertEqual(show_span(span), """'values' kind 1
  empty = empty
  string = 'text'
  true = True
  false = False
  least = -9223372036854775808
  most = 9223372036854775807
  zero = double -0.0
  infinite = double -inf
  nan = double nan
  bytes = bytes:00ff
  no bytes = bytes:
  strings = ['', 'two', empty]
  booleans = [True, False]
  integers = [-9223372036854775808, 0, 9223372036854775807]
  reals = [double 0.5, double -0.0, double inf]
  no integers = []
  mixed = [1, {none: empty, in: 'last'}, [True, False]]
  map = {none: empty, in: 'last'}
  no entries = {}
  twice = 2
  status 0 ''
  dropped 0 0 0""")

    def test_texts_that_are_empty_invalid_or_huge(self):
        (span,) = self.record("texts").spans()
        self.assertEqual(show_span(span), """'a\ufffdb' kind 1
  empty = ''
  null = ''
  invalid = bytes:61ff62
  surrogate = bytes:eda080
  key \ufffd = 'v'
  utf-8 = '€ 😀'
  nul = 'a\\x00b'
  huge = 1048576 times 'x'
  event '' at 1 () -0
  event '\ufffd' at 2 () -0
  status 2 'bad \ufffd'
  dropped 0 0 0""")

    def test_spans_of_every_kind_with_links_events_status_and_scopes(self):
        receiver = self.record("spans")
        kinds = [span for span in receiver.spans() if span.name == "kind"]
        self.assertEqual([span.kind for span in kinds], [1, 2, 3, 4, 5])
        for span in kinds:
            self.assertEqual((span.trace_id.hex(), span.parent_span_id.hex(), span.trace_state),
                             ("100102030405060708090a0b0c0d0e0f", "2001020304050607", "a=1,b=2"))
            self.assertEqual((span.start_time_unix_nano, span.end_time_unix_nano), (5, 7))
            self.assertEqual(span.flags & 0x3FF, 0x301)  # sampled; the parent is remote
            self.assertEqual((len(span.span_id), span.span_id == bytes(8)), (8, False))
        described, fine = [span for span in receiver.spans() if span.name != "kind"]
        self.assertEqual(show_span(described), """'described' kind 1
  event 'event' at 1000 (of: 'it') -0
  event 'last' at 4000000000000000000 () -0
  link 100102030405060708090a0b0c0d0e0f 2001020304050607 'a=1,b=2' (of: 'it') -0
  status 2 'because'
  dropped 0 0 0""")
        self.assertEqual((fine.status.code, fine.parent_span_id), (1, b""))
        (group,) = receiver.requests[0].resource_spans
        self.assertEqual(group.schema_url, "https://example.com/resource")
        scopes = {scope.scope.name: scope for scope in group.scope_spans}
        self.assertEqual(scopes["shapes"].scope.version, "1.0")
        scoped = scopes["shapes.scoped"]
        self.assertEqual((scoped.schema_url, show_pairs(scoped.scope.attributes)),
                         ("https://example.com/scope", "module: 'cart'"))

    def test_values_that_are_too_deep_for_a_receiver_are_cut(self):
        receiver = self.record("deep")
        for owner in receiver.resources():
            (value,) = [pair.value for pair in owner.attributes if pair.key == "deep"]
            self.assertEqual(nesting(value), (31, "empty"))
        seen = set()
        for request in receiver.requests:
            for scope in request.resource_spans[0].scope_spans:
                for span in scope.spans:
                    found = re.fullmatch(r"deep (\d+)", span.name)
                    if not found:
                        continue
                    depth = int(found[1])
                    expected = (31, "empty") if depth > 31 else (depth, "7")
                    for owner in span, scope.scope, span.events[0], span.links[0]:
                        self.assertEqual([nesting(pair.value) for pair in owner.attributes],
                                         [expected, expected], (depth, type(owner)))
                    seen.add(depth)
        self.assertEqual(seen, {40, 33, 32, 31, 30, 29})
        self.assertEqual(sum(span.name == "plain" for span in receiver.spans()), 24)

    def test_a_larger_limit_of_the_depth_is_refused(self):
        with self.kind() as receiver:
            done = harness.run("shapes", "deep", receiver=receiver,
                               env={"OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT": "32"})
        self.assertIn("OTEL_C_ATTRIBUTE_VALUE_DEPTH_LIMIT", done.stderr)
        self.assertEqual(receiver.faults, [])
        self.assertEqual(len(receiver.spans()), 30)

    def test_limits(self):
        receiver = self.record("limits", env={
            "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "3", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "2",
            "OTEL_SPAN_EVENT_COUNT_LIMIT": "1", "OTEL_SPAN_LINK_COUNT_LIMIT": "2",
            "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": "0"})
        (span,) = receiver.spans()
        link = "  link 100102030405060708090a0b0c0d0e0f 2001020304050607 '' () -3\n"
        self.assertEqual(show_span(span), f"""'limits' kind 1
  a = '123'
  b = bytes:313233
  event 'event' at 9 (a: '123') -2
{link}{link}  status 0 ''
  dropped 1 2 1""")


class ShapesByGrpc(Shapes):
    kind = harness.GrpcReceiver


if __name__ == "__main__":
    harness.main()
