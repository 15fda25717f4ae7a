# SPDX-License-Identifier: Apache-2.0
"""What must arrive at a receiver, worked out from a journal (support/journal.h).

Written after the OpenTelemetry specification and the public headers, not after otel-c's
code. A difference between what was asked for and what arrived is an AssertionError that
says where.
"""
import base64
import itertools
import json
import pathlib
import struct

CHILD_FLAG, REMOTE_FLAG = 0x100, 0x200
NO_TRACE, NO_SPAN = "0" * 32, "0" * 16

# How far a measured time may be from the wall clock, looked at just before and after.
CLOCK_ERROR_NS = 2_000_000


def text_of(chars):
    """The text that stands for bytes: each byte that is not part of UTF-8 is U+FFFD."""
    rest = chars.encode("latin-1")
    text = ""
    while True:
        try:
            return text + rest.decode("utf-8")
        except UnicodeDecodeError as bad:
            text += rest[:bad.start].decode("utf-8") + "\ufffd" * (bad.end - bad.start)
            rest = rest[bad.end:]


def number_of_bits(bits):
    """Floating point numbers compare by their bits, but one NaN is like another."""
    value = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return "NaN" if value != value else bits


def asked_string(chars, limit):
    raw = chars.encode("latin-1")
    try:
        return ("string", raw.decode("utf-8")[:limit])
    except UnicodeDecodeError:
        return ("bytes", raw[:limit])


def asked_value(kind, value, limit=None):
    """A value as it must arrive; `limit` is OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT."""
    if kind == "e" or value is None:
        return ("empty",)
    if kind == "s":
        return asked_string(value, limit)
    if kind == "b":
        return ("bool", value)
    if kind == "i":
        return ("int", value)
    if kind == "d":
        return ("double", number_of_bits(value))
    if kind == "y":
        return ("bytes", value.encode("latin-1")[:limit])
    if kind == "A":
        return ("array", [asked_value(*element, limit) for element in value])
    if kind == "M":
        return ("map", {text_of(key): asked_value(*element, limit) for key, *element in value})
    return ("array", [asked_value(kind.lower(), element, limit) for element in value])


def received_value(value):
    if not value:
        return ("empty",)
    (kind, content), = value.items()
    if kind == "stringValue":
        return ("string", content)
    if kind == "boolValue":
        return ("bool", content)
    if kind == "intValue":
        return ("int", int(content))
    if kind == "doubleValue":
        return ("double", number_of_bits(struct.unpack("<Q", struct.pack("<d", float(content)))[0]))
    if kind == "bytesValue":
        return ("bytes", base64.b64decode(content))
    if kind == "arrayValue":
        return ("array", [received_value(element) for element in content.get("values", [])])
    if kind == "kvlistValue":
        return ("map", received_attributes(content.get("values")))
    raise AssertionError(f"a value of type {kind}")


def received_attributes(attributes):
    found = {attribute.get("key", ""): received_value(attribute.get("value"))
             for attribute in attributes or ()}
    assert len(found) == len(attributes or ()), f"a key is there twice: {attributes}"
    return found


def equal(what, received, asked):
    assert received == asked, f"{what}\n  arrived {received!r}\n  asked   {asked!r}"


class List:
    """Attributes that came in one list: of an event, a link, a tracer, the resource."""

    def __init__(self, attributes, limit=None, length_limit=None):
        self.values = {}
        for key, kind, value in attributes:
            if key:
                self.values[text_of(key)] = asked_value(kind, value, length_limit)
        self.kept = len(self.values) if limit is None else min(limit, len(self.values))

    def check(self, what, received, dropped=0):
        found = received_attributes(received)
        equal(f"{what}: number of attributes", len(found), self.kept)
        equal(f"{what}: dropped attributes", dropped, len(self.values) - self.kept)
        equal(what, found, dict(itertools.islice(self.values.items(), self.kept)))


class Expected:
    """One span, from its line in the journal."""

    def __init__(self, line, limits):
        self.said = said = json.loads(line)
        self.limits = limits
        self.attributes, self.dropped_attributes = {}, 0
        self.events, self.dropped_events = [], 0
        self.links, self.dropped_links = [], 0
        self.name, self.status, self.description = said["name"], 0, None
        for call, *arguments in said["calls"]:
            getattr(self, f"on_{call}")(*arguments)

    def on_set(self, key, kind, value):
        if not key:
            return
        key = text_of(key)
        if key not in self.attributes and len(self.attributes) == self.limits["attributes"]:
            self.dropped_attributes += 1
        else:
            self.attributes[key] = asked_value(kind, value, self.limits["length"])

    def on_event(self, name, time, attributes):
        if len(self.events) == self.limits["events"]:
            self.dropped_events += 1
        else:
            self.events.append((text_of(name), time, List(
                attributes, self.limits["event_attributes"], self.limits["length"])))

    def on_exception(self, kind, message, stack, time, attributes):
        parts = {"exception.type": kind, "exception.message": message,
                 "exception.stacktrace": stack}
        known = [[key, "s", value] for key, value in parts.items() if value is not None]
        self.on_event("exception", time, known + attributes)

    def on_link(self, trace, span, flags, remote, state, attributes):
        is_valid = trace != NO_TRACE and span != NO_SPAN
        if not is_valid and not attributes and not state:
            return
        if len(self.links) == self.limits["links"]:
            self.dropped_links += 1
            return
        self.links.append({
            "traceId": trace if trace != NO_TRACE else "",
            "spanId": span if span != NO_SPAN else "",
            "traceState": state,
            "flags": flags | CHILD_FLAG | (REMOTE_FLAG if remote else 0),
            "attributes": List(attributes, self.limits["link_attributes"],
                               self.limits["length"]),
        })

    def on_status(self, status, description):
        if status != 0 and self.status != 1:
            self.status = status
            self.description = description if status == 2 else None

    def on_name(self, name):
        self.name = name

    def flags(self):
        said = self.said
        if "parent_trace" not in said:
            return 0x03 | CHILD_FLAG  # sampled, and our ids are random
        return (0x01 | (said["parent_flags"] & 0x02) | CHILD_FLAG
                | (REMOTE_FLAG if said["parent_remote"] else 0))

    def check(self, span):
        said = self.said
        assert said["sampled"], "a span that is not sampled arrived"
        equal("trace id", span["traceId"], said["trace"])
        if "parent_trace" in said:
            equal("trace id and the parent's", span["traceId"], said["parent_trace"])
        equal("parent", span.get("parentSpanId") or NO_SPAN, said["parent"])
        equal("flags", span.get("flags", 0), self.flags())
        equal("tracestate", span.get("traceState", ""), said["state"])
        equal("name", span.get("name", ""), text_of(self.name))
        equal("kind", span["kind"], said["kind"] + 1)
        status = span.get("status", {})
        equal("status", status.get("code", 0), self.status)
        equal("description", status.get("message", ""), text_of(self.description or ""))
        self.check_time("start", span["startTimeUnixNano"], said["start"])
        self.check_time("end", span["endTimeUnixNano"], said["end"])
        equal("attributes", received_attributes(span.get("attributes")), self.attributes)
        equal("dropped attributes", span.get("droppedAttributesCount", 0),
              self.dropped_attributes)
        self.check_events(span.get("events", []))
        equal("dropped events", span.get("droppedEventsCount", 0), self.dropped_events)
        self.check_links(span.get("links", []))
        equal("dropped links", span.get("droppedLinksCount", 0), self.dropped_links)

    def check_events(self, events):
        equal("number of events", len(events), len(self.events))
        for number, (event, (name, time, attributes)) in enumerate(zip(events, self.events)):
            equal(f"name of event {number}", event.get("name", ""), name)
            self.check_time(f"time of event {number}", event["timeUnixNano"], time)
            attributes.check(f"event {number}", event.get("attributes"),
                             event.get("droppedAttributesCount", 0))

    def check_links(self, links):
        equal("number of links", len(links), len(self.links))
        for number, (link, asked) in enumerate(zip(links, self.links)):
            for field in ("traceId", "spanId", "traceState"):
                equal(f"{field} of link {number}", link.get(field, ""), asked[field])
            equal(f"flags of link {number}", link.get("flags", 0), asked["flags"])
            asked["attributes"].check(f"link {number}", link.get("attributes"),
                                      link.get("droppedAttributesCount", 0))

    @staticmethod
    def check_time(what, received, asked):
        received = int(received)
        if isinstance(asked, int):
            equal(what, received, asked)
            return
        before, after = asked
        assert before - CLOCK_ERROR_NS <= received <= after + CLOCK_ERROR_NS, (
            f"{what}: {received} is {before - received} ns before or {received - after} ns "
            "after the call")


class Journal:
    """Everything that a program of ours asked for: lines by span id."""

    def __init__(self, folder, limits):
        folder = pathlib.Path(folder)
        self.limits = limits
        self.setup = json.loads((folder / "setup.json").read_text())
        self.lines = {}
        self.unsampled = 0
        for file in sorted(folder.glob("spans-*.jsonl")):
            with open(file, encoding="ascii") as lines:
                for line in lines:
                    self._add(line)
        self.measured = {}

    def _add(self, line):
        start = line.index('"span":"') + 8
        if '"sampled":false' in line[start:start + 60]:
            self.unsampled += 1
            return
        span_id = line[start:start + 16]
        assert span_id not in self.lines, f"span id {span_id} twice"
        self.lines[span_id] = line

    def check_span(self, span):
        """Compare a span that arrived; returns the number of its tracer."""
        expected = Expected(self.lines[span["spanId"]], self.limits)
        try:
            expected.check(span)
        except AssertionError as difference:
            raise AssertionError(f"span {span['spanId']}: {difference}") from None
        said = expected.said
        is_measured = not isinstance(said["start"], int) and not isinstance(said["end"], int)
        if is_measured and said["local"]:
            self.measured[span["spanId"]] = (
                int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]),
                said["parent"] if said.get("parent_local") else None)
        return said["tracer"]

    def check_nesting(self):
        """Of entered spans: none ends before it starts, none leaves its parent's time."""
        checked = 0
        for span_id, (start, end, parent) in self.measured.items():
            assert start <= end, f"span {span_id} ends {start - end} ns before its start"
            if parent in self.measured:
                checked += 1
                parent_start, parent_end, _ = self.measured[parent]
                assert parent_start <= start and end <= parent_end, (
                    f"span {span_id} starts {start - parent_start} ns after its parent's start "
                    f"and ends {parent_end - end} ns before its end")
        return checked

    def check_scope(self, tracer, scope_group):
        name, version, schema_url, attributes = self.setup["tracers"][tracer]
        scope = scope_group.get("scope", {})
        equal("scope name", scope.get("name", ""), text_of(name))
        equal("scope version", scope.get("version", ""), text_of(version or ""))
        equal("scope schema URL", scope_group.get("schemaUrl", ""), schema_url or "")
        List(attributes).check("scope", scope.get("attributes"),
                               scope.get("droppedAttributesCount", 0))

    def check_resource(self, resource_group, others):
        """`others`: what the resource has besides the attributes that were given in code."""
        resource = resource_group["resource"]
        found = received_attributes(resource.get("attributes"))
        asked = dict(others)
        asked.update(List(self.setup["resource"]).values)
        equal("resource", found, asked)
        equal("resource: dropped attributes", resource.get("droppedAttributesCount", 0), 0)
