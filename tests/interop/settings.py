#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same environment gives the same resource and the same limits as in the Python SDK.

usage: settings.py PATH-OF-SETTINGS

Not compared: attributes that say what process and SDK it is, and the name that a service
without one gets, which are the peer's own. Known to be different, with the reason:

- a bad pair in OTEL_RESOURCE_ATTRIBUTES: the specification discards the whole text, and so does
  otel-c; the peer leaves out the pair. A value with a bad %-sequence is one for us, too.
- OTEL_SERVICE_NAME in OTEL_RESOURCE_ATTRIBUTES twice: unspecified; both take the last one.
- a limit that is no number: the specification wants a warning and the default; the peer refuses
  to start, and takes an empty one for no limit. Here it is compared with the peer without the
  variable.
- OTEL_ATTRIBUTE_COUNT_LIMIT: the peer applies it to attributes of events and links as well,
  which have variables of their own; that of OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT is that of
  all attributes of a span for otel-c, those of its events and links included.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402

from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.resources import Resource  # noqa: E402
from opentelemetry.sdk.trace import SpanLimits, TracerProvider  # noqa: E402

MANY = 140
VALUE = "äöü-漢字-🙂-0123456789-0123456789-0123456789-0123456789"
OWN = ("telemetry.", "process.", "host.", "os.", "container.", "service.instance.")

RESOURCES = [
    {"OTEL_RESOURCE_ATTRIBUTES": text} for text in (
        "a=1", "a=1,b=2", " a = 1 , b = 2 ", "a=1,,b=2", "a=1,b=2,", "a=%20x%20", "a=100%25",
        "a=%C3%A9", "a=x+y", "a=1=2", "a=", "a=1,a=2", "service.name=shop",
        "service.name=shop,service.version=1.2", "deployment.environment.name=pro%2Cduction",
        "a=%3D%2C%22", "key.with.dots=v;x", "a=ä", "a=%E6%BC%A2", "")
] + [
    {"OTEL_SERVICE_NAME": "named"},
    {"OTEL_SERVICE_NAME": "named", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,a=1"},
    {"OTEL_SERVICE_NAME": "", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"},
    {"OTEL_SERVICE_NAME": "with blank and ä"},
]

LIMITS = [
    {},
    {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "10"},
    {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0"},
    {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "139"},
    {"OTEL_SPAN_EVENT_COUNT_LIMIT": "7"},
    {"OTEL_SPAN_EVENT_COUNT_LIMIT": "1", "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT": "5"},
    {"OTEL_SPAN_LINK_COUNT_LIMIT": "7"},
    {"OTEL_SPAN_LINK_COUNT_LIMIT": "1", "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT": "5"},
    {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "9"},
    {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "7"},
    {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "0"},
    {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1000"},
    {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "20", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "3"},
    {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "5", "OTEL_ATTRIBUTE_COUNT_LIMIT": "128"},
]
BAD = ["", "x", "-1", "1.5", "0x10", "1e3", "10 apples"]
LIMITS_OF_SPANS = [  # see above
    {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "8"},
    {"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "30", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "8"},
    {"OTEL_ATTRIBUTE_COUNT_LIMIT": "20"},
    {"OTEL_ATTRIBUTE_COUNT_LIMIT": "20", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "30"},
]


def ask_us(program, settings):
    out = subprocess.run([program], check=True, stdout=subprocess.PIPE, timeout=60,
                         env={**settings, "OTEL_LOG_LEVEL": "error"}).stdout.decode()
    resource, limits = {}, {}
    for line in out.splitlines():
        what, *words = line.split()
        if what == "resource":
            resource[peers.decode(words[0])] = peers.decode(words[1])
        else:
            limits[what] = [int(word) for word in words]
    return resource, limits


def described(attributes, dropped):
    first = next(iter(attributes.values()), "")
    return [len(attributes), dropped, len(first)]


def ask_peer(settings):
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    os.environ.update(settings)
    resource = Resource.create()
    provider = TracerProvider(resource=resource, span_limits=SpanLimits())
    attributes = {f"k{i:03}": VALUE for i in range(MANY)}
    span = provider.get_tracer("settings").start_span("span")
    other = trace.SpanContext(1 << 120, 1 << 56, False, trace.TraceFlags(1))
    for i in range(MANY):
        span.set_attribute(f"k{i:03}", VALUE)
        is_last = i == MANY - 1
        span.add_event("event", attributes if is_last else None)
        span.add_link(other, attributes if is_last else None)
    span.end()
    limits = {"span": described(span.attributes, span.dropped_attributes)}
    for what, things, dropped in (("events", span.events, span.dropped_events),
                                  ("links", span.links, span.dropped_links)):
        last = things[-1]  # it drops the oldest, otel-c the newest
        limits[what] = described(last.attributes, last.attributes.dropped) + [len(things), dropped]
    return dict(resource.attributes), limits


def told(attributes):
    """Without what each side says about itself."""
    return {key: value for key, value in attributes.items()
            if not key.startswith(OWN) and not str(value).startswith("unknown_service")}


def main():
    program = sys.argv[1]
    found = peers.Differences()
    for settings in RESOURCES:
        found.compare(settings, told(ask_us(program, settings)[0]), told(ask_peer(settings)[0]))
    for settings in LIMITS:
        found.compare(settings, ask_us(program, settings)[1], ask_peer(settings)[1])
    for settings in LIMITS_OF_SPANS:
        found.compare(settings, ask_us(program, settings)[1]["span"],
                      ask_peer(settings)[1]["span"])
    usual = ask_peer({})[1]
    for text in BAD:
        settings = {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": text, "OTEL_SPAN_EVENT_COUNT_LIMIT": text}
        found.compare(settings, ask_us(program, settings)[1], usual)
    for text in ("a=1,b", "a", "=1", "a=%zz,b=2", "a=1,=2"):
        settings = {"OTEL_RESOURCE_ATTRIBUTES": text}
        found.compare(settings, told(ask_us(program, settings)[0]), {})
    found.finish(50)


if __name__ == "__main__":
    main()
