#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Spans of every shape stand in files exactly as they were recorded.

usage: files_equal.py PATH-OF-SHAPES [SPANS [SEED]]

shapes writes its spans as lines of OTLP/JSON to stdout, and as a trace for Perfetto. The lines
are compared with the journal of what was asked for, once as this program reads them, and once
as the OpenTelemetry Collector does, to which they are posted. The trace has the same spans: what
is on one track nests, and the same way as the spans do.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import collector_equal  # noqa: E402
import journal  # noqa: E402
import receiver  # noqa: E402

SCHEMA_URL = collector_equal.schema_url_of_detectors()

SPANS = 8_000
LONG_SPANS = 200_000


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def unique_names(pairs):
    found = dict(pairs)
    assert len(found) == len(pairs), f"a name is there twice: {pairs}"
    return found


def read(text):
    """One JSON value, to the letter."""
    return json.loads(text, parse_constant=no_constant, object_pairs_hook=unique_names)


def without_empty_ids(request):
    """The collector shows ids of zeros, which links may have, as empty ones."""
    for _, _, span in receiver.spans_of(request):
        for link in span.get("links", []):
            for field, empty in (("traceId", journal.NO_TRACE), ("spanId", journal.NO_SPAN)):
                link[field] = "" if link[field] == empty else link[field]
    return request


def record(program, folder, spans, seed, trace):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update({name: str(value) for name, value in collector_equal.SETTINGS.items()})
    environment["OTEL_TRACES_EXPORTER"] = "otlp/stdout"
    process = subprocess.Popen([program, str(folder), str(spans), str(seed), str(trace)],
                               env=environment, stdout=subprocess.PIPE)
    try:
        out, _ = process.communicate(timeout=800)
    finally:
        process.kill()
    assert process.returncode == 0, f"{program} ended with {process.returncode}"
    *lines, statistics = out.decode("utf-8").removesuffix("\n").split("\n")
    return lines, read(statistics), collector_equal.resource_of(program, process.pid)


def post(endpoint, line):
    request = urllib.request.Request(endpoint + "/v1/traces", line.encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=100) as answer:
        assert read(answer.read()) == {"partialSuccess": {}}, "the collector refused spans"


# ---- the trace for Perfetto ---------------------------------------------------------------

def nanoseconds(us):
    """As viewers read times: as doubles."""
    return round(us * 1000)


def plain(value):
    """What a value of OTLP is without its types."""
    if not value:
        return None
    (kind, content), = value.items()
    if kind == "intValue":
        return int(content) if abs(int(content)) <= 2**53 else content
    if kind == "arrayValue":
        return [plain(element) for element in content.get("values", [])]
    if kind == "kvlistValue":
        return plain_attributes(content.get("values"))
    return content


def plain_attributes(attributes):
    return {attribute.get("key", ""): plain(attribute.get("value"))
            for attribute in attributes or ()}


def check_event(event, span, zero):
    what = f"span {span['spanId']}"
    start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    args = event["args"]
    journal.equal(f"{what}: start", nanoseconds(event["ts"]), start - zero)
    journal.equal(f"{what}: duration", nanoseconds(event["dur"]), max(end - start, 0))
    journal.equal(f"{what}: name", event["name"], span.get("name", ""))
    journal.equal(f"{what}: trace", args["trace_id"], span["traceId"])
    journal.equal(f"{what}: parent", args.get("parent_span_id"), span.get("parentSpanId"))
    journal.equal(f"{what}: attributes", args["attributes"],
                  plain_attributes(span.get("attributes")))
    journal.equal(f"{what}: status", args.get("status"),
                  {0: None, 1: "ok", 2: "error"}[span.get("status", {}).get("code", 0)])
    journal.equal(f"{what}: links", len(args.get("links", [])), len(span.get("links", [])))


def check_nesting(events):
    """What a viewer does with the slices of one track. Returns how many lie on others."""
    nested = 0
    tracks = {}
    for event in events:
        tracks.setdefault((event["pid"], event["tid"]), []).append(event)
    for track in tracks.values():
        track.sort(key=lambda event: nanoseconds(event["ts"]))  # stable, as viewers sort
        stack = []
        for event in track:
            start = nanoseconds(event["ts"])
            end = start + nanoseconds(event["dur"])
            while stack and stack[-1][0] <= start:
                stack.pop()
            if stack:
                outer_end, outer = stack[-1]
                assert end <= outer_end, f"{event} is only in part within {outer}"
                journal.equal("what a span lies on", event["args"].get("parent_span_id"),
                              outer["args"]["span_id"])
                nested += 1
            stack.append((end, event))
    return nested, len(tracks)


def check_arrows(events, slices):
    """Both ends of each are where a slice begins."""
    begins = {(event["tid"], event["ts"]) for event in slices}
    tails = {event["id"]: event for event in events if event["ph"] == "s"}
    heads = {event["id"]: event for event in events if event["ph"] == "f"}
    journal.equal("arrows with two ends", tails.keys(), heads.keys())
    for event in (*tails.values(), *heads.values()):
        assert (event["tid"], event["ts"]) in begins, f"{event} is at no span"
    return len(tails)


def check_trace(text, spans):
    trace = read(text)
    zero = int(trace["otherData"]["zero_unix_nano"])
    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    journal.equal("number of slices", len(slices), len(spans))
    for event in slices:
        check_event(event, spans[event["args"]["span_id"]], zero)
    journal.equal("number of events", sum(event["ph"] == "i" for event in events),
                  sum(len(span.get("events", [])) for span in spans.values()))
    nested, tracks = check_nesting(slices)
    arrows = check_arrows(events, slices)
    named = {event["tid"] for event in events if event.get("name") == "thread_name"}
    journal.equal("named tracks", named, {event["tid"] for event in slices})
    assert nested != 0 and arrows != 0, "nothing nests, or nothing points"
    return nested, tracks, arrows


def main():
    program = sys.argv[1]
    usual = LONG_SPANS if os.environ.get("OTEL_TEST_LONG") else SPANS
    spans = int(sys.argv[2]) if len(sys.argv) > 2 else usual
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    with tempfile.TemporaryDirectory(prefix="files_equal.") as folder:
        collector = receiver.Collector(folder)
        collector.start()
        path = pathlib.Path(folder) / "trace.json"
        lines, statistics, resource = record(program, folder, spans, seed, path)
        asked = journal.Journal(folder, collector_equal.LIMITS)
        collector_equal.check_statistics(statistics, asked)
        requests = [without_empty_ids(read(line)) for line in lines]
        count = collector_equal.compare(asked, resource, requests, SCHEMA_URL)
        journal.equal("number of spans in lines", count, len(asked.lines))
        for line in lines:
            post(collector.endpoint, line)
        collector.stop()
        count = collector_equal.compare(asked, resource, collector.requests(), SCHEMA_URL)
        journal.equal("number of spans at the collector", count, len(asked.lines))
        written = {span["spanId"]: span for request in requests
                   for _, _, span in receiver.spans_of(request)}
        nested, tracks, arrows = check_trace(path.read_text(), written)
        print(f"{count} spans are equal in {len(lines)} lines and at the collector; in the trace "
              f"{nested} lie on their parents, on {tracks} tracks with {arrows} arrows")


if __name__ == "__main__":
    main()
