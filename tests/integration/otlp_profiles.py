#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles arrive at a real collector, by every protocol and compression, as they were given; and
where a collector does not take them, one line of the log says what is missing. With the example,
which traces and is profiled: every sample's span has arrived there too, with the sample's route, and
functions have their names, unless a setting says that they are not wanted.

usage: otlp_profiles.py PATH-OF-OTLP_PROFILES [PATH-OF-QUERY_SERVER]
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
import receiver  # noqa: E402

PERIOD_NS = 10_000_000
WAYS = [("http/protobuf", "none"), ("http/protobuf", "gzip"), ("grpc", "none"), ("grpc", "gzip")]
FIND = ["7f0000001000", "401234", "401000"]
SELL, CODE = ["401234", "401000"], ["600010", "1234", "401000"]
NAMES = {"401000": "main", "401234": "sort", "7f0000001000": "sort", "600010": "", "1234": ""}
# Functions of the example that its compiler does not inline.
QUERIES = {"add_up_orders", "sort_customers", "top_customers", "find_order"}
# What support/profile_double.c has: stack, span, attributes, count.
SHOP = [
    (FIND, ("11" * 16, "21" * 8), {"thread.id": "4711", "thread.name": "worker",
                                   "http.route": "/find", "query": "A"}, 70),
    (FIND, ("11" * 16, "21" * 8), {"thread.id": "4712", "http.route": "/find", "query": "A"}, 5),
    (SELL, ("12" * 16, "22" * 8), {"thread.id": "4712", "http.route": "/sell"}, 20),
    (SELL, None, {"thread.id": "4712"}, 4),
    (CODE, None, {"thread.id": "4711", "thread.name": "worker"}, 1),
]


def run(program, endpoint, protocol, compression, *arguments, timeout_ms=60_000):
    """What the program says of the export, and the lines of its log."""
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update(OTEL_EXPORTER_OTLP_ENDPOINT=endpoint, OTEL_SERVICE_NAME="by-environment",
                       OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                       OTEL_EXPORTER_OTLP_COMPRESSION=compression,
                       OTEL_EXPORTER_OTLP_TIMEOUT=str(timeout_ms))
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True,
                          timeout=200)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.splitlines()


# --- what the collector has written down ---

class Request:
    def __init__(self, request):
        self.dictionary = request["dictionary"]
        (self.resource,) = request["resourceProfiles"]
        (self.scope,) = self.resource["scopeProfiles"]

    def row(self, table, index):
        return self.dictionary[table][index]

    def string(self, index):
        return self.row("stringTable", index)

    def resource_texts(self):
        """The collector has put their names and texts into the dictionary."""
        return {self.string(one["keyStrindex"]): self.string(one["value"]["stringValueStrindex"])
                for one in self.resource["resource"]["attributes"]
                if "stringValueStrindex" in one["value"]}

    def attributes(self, holder):
        rows = [self.row("attributeTable", index) for index in holder.get("attributeIndices", [])]
        return {self.string(row["keyStrindex"]): str(*row["value"].values()) for row in rows}

    def locations(self, sample):
        stack = self.row("stackTable", sample.get("stackIndex", 0))
        return [self.row("locationTable", index) for index in stack.get("locationIndices", [])]

    def stack(self, sample):
        rows = self.locations(sample)
        for row in rows:
            assert self.attributes(row) == {"profile.frame.type": "native"}
        return [f"{int(row.get('address', 0)):x}" for row in rows]

    def file(self, location):
        mapping = self.row("mappingTable", location.get("mappingIndex", 0))
        return self.string(mapping.get("filenameStrindex", 0))

    def name(self, location):
        if not location.get("lines"):
            return ""
        (line,) = location["lines"]
        function = self.row("functionTable", line["functionIndex"])
        assert function["nameStrindex"] == function["systemNameStrindex"], function
        return self.string(function["nameStrindex"])

    def link(self, sample):
        row = self.row("linkTable", sample.get("linkIndex", 0))
        return (row["traceId"], row["spanId"]) if row.get("traceId") else None

    def samples(self, profile):
        return [(self.stack(sample), self.link(sample), self.attributes(sample),
                 *map(int, sample["values"])) for sample in profile["samples"]]

    def kind(self, profile):
        kind = profile["sampleType"]
        return self.string(kind["typeStrindex"]), self.string(kind["unitStrindex"])


def check_request(request, service):
    texts = request.resource_texts()
    assert texts["service.name"] == service and texts["telemetry.sdk.name"] == "otel-c", texts
    assert request.scope["scope"]["name"] == "otel-c"
    time, count = request.scope["profiles"]
    assert request.kind(time) == ("cpu", "nanoseconds") and int(time["period"]) == PERIOD_NS
    assert request.kind(count) == ("samples", "count")
    assert time["profileId"] != count["profileId"] and set(time["profileId"]) != {"0"}
    assert request.samples(count) == SHOP, request.samples(count)
    assert [sample[-1] for sample in request.samples(time)] == [
        sample[-1] * PERIOD_NS for sample in SHOP]
    names = {f"{int(row['address']):x}": request.name(row)
             for row in request.dictionary["locationTable"][1:]}
    assert names == NAMES, names
    builds = {request.string(row["filenameStrindex"]): request.attributes(row)
              for row in request.dictionary["mappingTable"][1:]}
    assert builds == {
        "/usr/bin/shop": {"process.executable.build_id.gnu": "b1" * 20},
        "/lib/libfast.so": {"process.executable.build_id.htlhash": "a5" * 16}}, builds


def check_taken(program, folder):
    collector = receiver.ProfilesCollector(folder)
    collector.start()
    services = []
    for protocol, compression in WAYS:
        said, log = run(program, collector.endpoint_of(protocol), protocol, compression)
        assert (said, log) == ("ok", []), (protocol, compression, said, log)
        services.append("by-environment")
    said, log = run(program, collector.endpoint, "http/protobuf", "none", "sdk")
    assert (said, log) == ("ok", []), (said, log)
    services.append("by-sdk")
    collector.stop()
    requests = [Request(request) for request in collector.requests()]
    assert len(requests) == len(services), f"{len(requests)} of {len(services)} requests came"
    for request, service in zip(requests, services):
        check_request(request, service)
    print(f"{len(requests)} requests with {len(SHOP)} samples arrived as they were sent")


def run_until_answered(*arguments):
    """A receiver of gRPC that does not know a service answers before it has the body, and resets the
    stream. libcurl 7.88 forgets such an answer when both come before it has sent the body: then the
    exporter tries again until its time is over, and may never see one."""
    for _ in range(6):
        said, log = run(*arguments, timeout_ms=10_000)
        if said != "out of time":
            break
    return said, log


def check_not_taken(program, folder):
    collector = receiver.Collector(folder)
    collector.start()
    for protocol, compression in WAYS[::2]:
        said, log = run_until_answered(program, collector.endpoint_of(protocol), protocol,
                                       compression)
        assert said == "not everything was delivered", said
        assert len(log) == 1, log
        for part in ("does not take profiles", "0.148", "service.profilesSupport"):
            assert part in log[0], log
        print(log[0])
    collector.stop()


# --- a program that is traced and profiled ---

def routes_of_spans(requests):
    """Of each span that has one, by its link."""
    return {(span["traceId"], span["spanId"]): attribute["value"]["stringValue"]
            for request in requests for _, _, span in receiver.spans_of(request)
            for attribute in span.get("attributes", []) if attribute["key"] == "http.route"}


def run_profiled(program, folder, **settings):
    """What the collector gets of it."""
    collector = receiver.ProfilesCollector(folder)
    collector.start()
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update(OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint, OTEL_C_PROFILER="on",
                       OTEL_C_PROFILER_OUT="otlp", OTEL_C_PROFILER_HZ="997",
                       OTEL_C_QUEUE_MAX_BYTES=str(256 << 20), **settings)
    subprocess.run([program, "1"], env=environment, check=True, timeout=600, cwd=folder)
    collector.stop()
    return list(collector.requests())


def profiles_of(requests):
    return [Request(one) for one in requests if "resourceProfiles" in one]


def check_linked(program, folder):
    requests = run_profiled(program, folder)
    routes = routes_of_spans(requests)
    linked = 0
    for request in profiles_of(requests):
        for _, link, attributes, count in request.samples(request.scope["profiles"][1]):
            if link is None:
                continue
            assert link in routes, f"there is no span {link}"
            assert attributes.get("http.route", routes[link]) == routes[link], (link, attributes)
            linked += count
    assert linked > 0, "no sample has a span"
    print(f"{linked} samples of {len(routes)} spans, each of which has arrived")
    check_named(profiles_of(requests), os.path.realpath(program))


def check_named(requests, program):
    """By their leaves: those in the program, which is not stripped, but for what its linker made.
    The C library is, and shows what it exports."""
    named = {}
    for request in requests:
        for sample in request.scope["profiles"][1]["samples"]:
            for leaf in request.locations(sample)[:1]:
                if request.file(leaf) == program:
                    name = request.name(leaf)
                    named[name] = named.get(name, 0) + int(*sample["values"])
    assert QUERIES & named.keys(), named
    assert named.get("", 0) * 10 < sum(named.values()), named
    print(", ".join(f"{name} {named[name]}" for name in sorted(named, key=named.get)[:-6:-1]))


def check_nameless(program, folder):
    requests = profiles_of(run_profiled(program, folder, OTEL_C_PROFILER_NAMES="off"))
    assert requests
    for request in requests:
        assert len(request.dictionary["functionTable"]) == 1, request.dictionary["functionTable"]
        assert not any(row.get("lines") for row in request.dictionary["locationTable"])


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_taken(sys.argv[1], folder)
        check_not_taken(sys.argv[1], folder)
        for program in sys.argv[2:]:
            check_linked(program, folder)
            check_nameless(program, folder)


if __name__ == "__main__":
    main()
