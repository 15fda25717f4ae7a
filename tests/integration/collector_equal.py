#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Spans of every shape arrive at a real receiver exactly as they were recorded.

usage: collector_equal.py PATH-OF-SHAPES [SPANS [SEED]]

shapes records from eight threads; the OpenTelemetry Collector takes it all and writes it
down as OTLP/JSON; every span is compared with the journal of what was asked for.
"""
import base64
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import journal  # noqa: E402
import receiver  # noqa: E402

SPANS = 100_000
LIMITS = {"length": 2500, "attributes": 20, "events": 8, "links": 5, "event_attributes": 6,
          "link_attributes": 4}
SETTINGS = {
    "OTEL_SERVICE_NAME": "shapes",
    "OTEL_RESOURCE_ATTRIBUTES": "from.env=100%25%20%C3%A9,from.both=env,service.name=other",
    "OTEL_C_RESOURCE_DETECTORS": "process",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": LIMITS["length"],
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": LIMITS["attributes"],
    "OTEL_SPAN_EVENT_COUNT_LIMIT": LIMITS["events"],
    "OTEL_SPAN_LINK_COUNT_LIMIT": LIMITS["links"],
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": LIMITS["event_attributes"],
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": LIMITS["link_attributes"],
    "OTEL_BSP_SCHEDULE_DELAY": 200,
    "OTEL_BSP_MAX_QUEUE_SIZE": 200_000,
    "OTEL_C_QUEUE_MAX_BYTES": 2_000_000_000,
    "OTEL_LOG_LEVEL": "error",
    # A busy machine takes its time.
    "OTEL_EXPORTER_OTLP_TIMEOUT": 120_000,
    "OTEL_BSP_EXPORT_TIMEOUT": 120_000,
}


def record(program, folder, endpoint, spans, seed):
    """Run shapes. Returns its statistics, and what its resource has besides its own."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update({name: str(value) for name, value in SETTINGS.items()})
    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    process = subprocess.Popen([program, str(folder), str(spans), str(seed)],
                               env=environment, stdout=subprocess.PIPE)
    try:
        out, _ = process.communicate(timeout=800)
    finally:
        process.kill()
    assert process.returncode == 0, f"{program} ended with {process.returncode}"
    return json.loads(out), resource_of(program, process.pid)


def resource_of(program, pid):
    path = os.path.realpath(program)
    runtime = os.confstr("CS_GNU_LIBC_VERSION").split()
    return {
        "service.name": ("string", "shapes"),
        "from.env": ("string", "100% é"),
        "telemetry.sdk.name": ("string", "otel-c"),
        "telemetry.sdk.language": ("string", "c"),
        "telemetry.sdk.version": ("string", library_version()),
        "process.pid": ("int", pid),
        "process.executable.name": ("string", os.path.basename(path)),
        "process.executable.path": ("string", path),
        "process.runtime.name": ("string", runtime[0]),
        "process.runtime.version": ("string", runtime[1]),
    }


def library_version():
    return macro("base.h", "OTEL_VERSION")


def macro(header, name):
    for line in (receiver.ROOT / "include/otel" / header).read_text().splitlines():
        if line.startswith(f'#define {name} "'):
            return line.split('"')[1]
    raise AssertionError(f"{header} has no {name}")


def check_statistics(statistics, asked):
    sampled, unsampled = len(asked.lines), asked.unsampled
    expected = {"status": 0, "started": sampled + unsampled, "unsampled": unsampled, "open": 0,
                "ended": sampled, "queued": 0, "delivered": sampled, "rejected": 0,
                "dropped": [0] * len(statistics["dropped"])}
    journal.equal("statistics", statistics, expected)


def schema_url_of_detectors():
    return macro("semconv.h", "OTEL_SEMCONV_SCHEMA_URL")


def compare(asked, others, requests, schema_url):
    """Returns how many spans were received, each once."""
    seen = set()
    for request in requests:
        for resource_group in request["resourceSpans"]:
            asked.check_resource(resource_group, others)
            journal.equal("resource schema URL", resource_group.get("schemaUrl", ""), schema_url)
            for scope_group in resource_group["scopeSpans"]:
                tracers = set()
                for span in scope_group["spans"]:
                    assert span["spanId"] not in seen, f"span {span['spanId']} came twice"
                    seen.add(span["spanId"])
                    assert span["spanId"] in asked.lines, f"nobody sent {span['spanId']}"
                    tracers.add(asked.check_span(span))
                for tracer in tracers:
                    asked.check_scope(tracer, scope_group)
    return len(seen)


def places(value, path=()):
    """The path of everything in a JSON value that is no list and no object."""
    items = (value.items() if isinstance(value, dict)
             else enumerate(value) if isinstance(value, list) else None)
    if items is None:
        yield path
        return
    for key, inner in items:
        yield from places(inner, path + (key,))


def changed(key, value):
    if isinstance(value, bool):
        return not value
    if key == "doubleValue":
        return -value if isinstance(value, (int, float)) and value != 0 else 1
    if isinstance(value, int):
        return value + 1
    if key == "bytesValue":
        return base64.b64encode(base64.b64decode(value) + b"!").decode()
    if key in ("intValue", "startTimeUnixNano", "endTimeUnixNano", "timeUnixNano"):
        return str(int(value) + 10**10 if int(value) < 2**62 else 0)
    return value + "A"


def check_that_differences_are_found(asked, spans):
    """The comparison itself: no part of these spans can be changed without notice."""
    count = 0
    for span in spans:
        for path in places(span):
            copy = other = json.loads(json.dumps(span))
            for key in path[:-1]:
                other = other[key]
            if path[-1] == "spanId" and len(path) == 1:
                continue
            other[path[-1]] = changed(path[-1], other[path[-1]])
            try:
                asked.check_span(copy)
            except (AssertionError, KeyError, ValueError):
                count += 1
                continue
            raise SystemExit(f"nobody notices another {path} in {span}")
    return count


def main():
    program = sys.argv[1]
    spans = int(sys.argv[2]) if len(sys.argv) > 2 else SPANS
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="collector_equal.") as folder:
        collector = receiver.Collector(folder)
        collector.start()
        statistics, others = record(program, folder, collector.endpoint, spans, seed)
        recorded = time.monotonic()
        asked = journal.Journal(folder, LIMITS)
        collector.stop()
        check_statistics(statistics, asked)
        received = compare(asked, others, collector.requests(), schema_url_of_detectors())
        journal.equal("number of spans", received, len(asked.lines))
        nested = asked.check_nesting()
        spans = [span for request in itertools.islice(collector.requests(), 1)
                 for _, _, span in receiver.spans_of(request)][:100]
        changes = check_that_differences_are_found(asked, spans)
        print(f"{received} spans are equal, {asked.unsampled} were unsampled, {nested} lie within "
              f"their parents; {changes} changes would have been noticed; recorded in "
              f"{recorded - began:.1f} s, compared in {time.monotonic() - recorded:.1f} s")


if __name__ == "__main__":
    main()
