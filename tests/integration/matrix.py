#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same spans by every protocol, compression and way arrive equal at real receivers.

usage: matrix.py PATH-OF-SHAPES PATH-OF-MAKE_CERTIFICATES [SPANS [SEED [PATTERN]]]

A way is a port without TLS, with TLS, with TLS and a client's certificate, or a Unix socket.
The receivers are the OpenTelemetry Collector, and one that takes nothing but what OTLP says
(support/strict_receiver.py); where it can, Rotel stands before the collector. Everything is
chosen by environment variables, as users do.

shapes -r sends the same spans in each run. Those of the first run at each receiver are compared
with the journal of what was asked for, field by field, and all others with the first. What
differs (only NaN may, which JSON has only one of) is compared with the journal again.

With OTEL_TEST_LONG=1 it is 100,000 spans a run. PATTERN is a regular expression for the names
of runs that are wanted, for example 'collector/grpc/.*/mtls'; '^strict/' does without the
collector and Rotel.

spec: E-OTEL_EXPORTER_OTLP_COMPRESSION, E-OTEL_EXPORTER_OTLP_CERTIFICATE,
spec: E-OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, E-OTEL_EXPORTER_OTLP_CLIENT_KEY
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import receiver  # noqa: E402

receiver.run_with_peers()
import collector_equal  # noqa: E402
import journal  # noqa: E402
import strict_receiver  # noqa: E402

PROTOCOLS = ("http/protobuf", "http/json", "grpc")
COMPRESSIONS = ("none", "gzip", "zstd")
ALONE = "^strict/"
PATIENCE_SECONDS = 120
SETTINGS = dict(collector_equal.SETTINGS, OTEL_C_RESOURCE_DETECTORS="none",
                OTEL_LOG_LEVEL="debug")
RESOURCE = ("service.name", "from.env", "telemetry.sdk.name", "telemetry.sdk.language",
            "telemetry.sdk.version")


class Run:
    """One way to one receiver."""

    def __init__(self, target, protocol, compression, mode):
        self.target, self.protocol, self.compression, self.mode = (
            target, protocol, compression, mode)
        self.name = "/".join((target.name, protocol, compression, mode))

    def environment(self, certificates):
        found = {name: value for name, value in os.environ.items()
                 if not name.startswith("OTEL_")}
        found.update({name: str(value) for name, value in SETTINGS.items()})
        found["OTEL_EXPORTER_OTLP_PROTOCOL"] = self.protocol
        found["OTEL_EXPORTER_OTLP_ENDPOINT"] = self.target.endpoint_of(self.protocol, self.mode)
        if self.compression != "none":
            found["OTEL_EXPORTER_OTLP_COMPRESSION"] = self.compression
        if "tls" in self.mode:
            found["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(certificates.authority)
        if self.mode == "mtls":
            found["OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"] = str(certificates.client)
            found["OTEL_EXPORTER_OTLP_CLIENT_KEY"] = str(certificates.client_key)
        return found


def shapes(program, folder, spans, seed, environment):
    done = subprocess.run([program, "-r", str(folder), str(spans), str(seed)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
    assert done.returncode == 0, f"shapes ended with {done.returncode}: {done.stderr.decode()}"
    return json.loads(done.stdout), done.stderr.decode()


# --- The receivers -----------------------------------------------------------

def digest(*parts):
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.digest()


def text(value):
    return json.dumps(value, sort_keys=True).encode()


class AtCollector:
    """What the collector has written down."""

    name = "collector"

    def __init__(self, collector):
        self.collector = collector
        self.endpoint_of = collector.endpoint_of

    @staticmethod
    def can(protocol, compression, mode):
        return True

    def take(self, run, _):
        return self.collector.take(run.mode)

    def take_all(self):
        for mode in self.collector.MODES:
            self.collector.take(mode)

    @staticmethod
    def as_json(request):
        return request

    @staticmethod
    def spans(request):
        """(span id, digest of the span and all that it is part of)."""
        for resource_group in request["resourceSpans"]:
            resource = text([resource_group["resource"], resource_group.get("schemaUrl")])
            for scope_group in resource_group["scopeSpans"]:
                scope = text([scope_group.get("scope"), scope_group.get("schemaUrl")])
                for span in scope_group["spans"]:
                    yield span["spanId"], digest(resource, scope, text(span))


class AtRotel(AtCollector):
    """Rotel, which hands on to the collector's plain port what it accepts."""

    name = "rotel"

    def __init__(self, collector, rotel):
        super().__init__(collector)
        self.rotel = rotel
        self.endpoint_of = lambda protocol, _: rotel.endpoint_of(protocol)

    @staticmethod
    def can(protocol, compression, mode):
        # Its JSON knows no empty values, and no empty arrays without their brackets.
        return mode == "plain" and compression != "zstd" and protocol != "http/json"

    def take(self, run, spans):
        """It answers before it hands on."""
        taken, until = [], time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until and sum(
                1 for request in taken for _ in receiver.spans_of(request)) < spans:
            time.sleep(0.01)
            taken += super().take(run, spans)
        return taken


class AtStrict:
    name = "strict"

    def __init__(self, strict):
        self.strict = strict
        self.endpoint_of = strict.endpoint_of

    @staticmethod
    def can(protocol, compression, mode):
        return protocol != "grpc" or compression != "zstd"  # gRPC's own core has none

    def take(self, run, _):
        requests = self.strict.take()
        assert not self.strict.faults, f"refused: {self.strict.faults[:3]}"
        for request in requests:
            self._check_way(run, request.facts)
        sent, plain = (sum(request.facts[name] for request in requests)
                       for name in ("bytes", "plain_bytes"))
        is_smaller = sent < plain * 0.9
        assert is_smaller == (run.compression != "none"), f"{sent} bytes were sent for {plain}"
        return requests

    def take_all(self):
        self.strict.take()
        self.strict.faults.clear()

    @staticmethod
    def _check_way(run, facts):
        journal.equal("protocol", facts["protocol"], run.protocol)
        journal.equal("mode", facts["mode"], run.mode)
        if run.protocol != "grpc":
            journal.equal("compression", facts["compression"], run.compression)
        if run.mode == "mtls":
            journal.equal("client", facts["client"], "client")

    @staticmethod
    def as_json(request):
        return request.as_json()

    @staticmethod
    def spans(request):
        for resource_group in request.message.resource_spans:
            resource = AtStrict._bytes(resource_group.resource)
            for scope_group in resource_group.scope_spans:
                scope = AtStrict._bytes(scope_group.scope)
                urls = text([resource_group.schema_url, scope_group.schema_url])
                for span in scope_group.spans:
                    yield span.span_id.hex(), digest(resource, scope, urls, AtStrict._bytes(span))

    @staticmethod
    def _bytes(message):
        return message.SerializeToString(deterministic=True)


# --- The comparison ----------------------------------------------------------

class Matrix:
    def __init__(self, program, folder, spans, seed, certificates):
        self.program, self.folder, self.count, self.seed = program, folder, spans, seed
        self.certificates = certificates
        self.resource = {name: value for name, value
                         in collector_equal.resource_of(program, 0).items() if name in RESOURCE}
        self.asked = self.statistics = None
        self.first = {}  # by the kind of receiver: digests by span id
        self.compared = self.again = 0

    def run(self, run):
        is_first = self.asked is None
        statistics, said = shapes(self.program, self.folder if is_first else "-", self.count,
                                  self.seed, run.environment(self.certificates))
        if is_first:
            self.asked = journal.Journal(self.folder, collector_equal.LIMITS)
        try:
            collector_equal.check_statistics(statistics, self.asked)
        except AssertionError as difference:
            raise AssertionError(f"{difference}\n{said}") from None
        assert " again in " not in said, f"not at the first attempt:\n{said}"
        self.compare(run, run.target.take(run, len(self.asked.lines)))

    def compare(self, run, requests):
        kind = type(run.target).as_json
        if kind not in self.first:
            received = self.compare_with_journal(map(run.target.as_json, requests))
            journal.equal("number of spans", received, len(self.asked.lines))
            self.first[kind] = {span_id: found for request in requests
                                for span_id, found in run.target.spans(request)}
        else:
            self.compare_with_first(run, requests, self.first[kind])
        self.compared += len(self.asked.lines)

    def compare_with_first(self, run, requests, first):
        seen, others = set(), []
        for request in requests:
            differs = False
            for span_id, found in run.target.spans(request):
                assert span_id not in seen, f"span {span_id} came twice"
                assert span_id in first, f"nobody sent {span_id}"
                seen.add(span_id)
                if first[span_id] != found:
                    differs = True
                    self.again += 1
            if differs:
                others.append(request)
        journal.equal("number of spans", len(seen), len(first))
        self.compare_with_journal(map(run.target.as_json, others))

    def compare_with_journal(self, requests):
        return collector_equal.compare(self.asked, self.resource, requests, "")


def check_that_others_are_refused(program, targets, certificates):
    """Without what a way demands nothing arrives, so the runs above mean something."""
    for target in targets:
        for protocol in PROTOCOLS[0], PROTOCOLS[2]:
            environment = Run(target, protocol, "none", "mtls").environment(certificates)
            for name, value in (("OTEL_EXPORTER_OTLP_CERTIFICATE", certificates.other_authority),
                                ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", None)):
                changed = dict(environment, OTEL_LOG_LEVEL="none", OTEL_EXPORTER_OTLP_TIMEOUT="300")
                if value is None:
                    del changed[name], changed["OTEL_EXPORTER_OTLP_CLIENT_KEY"]
                else:
                    changed[name] = str(value)
                statistics, _ = shapes(program, "-", 8, 1, changed)
                assert statistics["delivered"] == 0, f"{target.name} takes {protocol} of anyone"
                assert sum(statistics["dropped"]) == statistics["ended"], statistics


def main():
    program, make_certificates = sys.argv[1:3]
    spans, seed, pattern = (
        sys.argv[i] if len(sys.argv) > i else default for i, default in
        ((3, 100_000 if os.environ.get("OTEL_TEST_LONG") == "1" else 1000), (4, 1), (5, "")))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="matrix.") as folder:
        folder = pathlib.Path(folder)
        certificates = receiver.Certificates(folder, make_certificates)
        strict = strict_receiver.StrictReceiver(folder, certificates)
        strict.start()
        targets = [AtStrict(strict)]
        if pattern != ALONE:
            collector = receiver.EveryWay(folder, certificates)
            collector.start()
            rotel = receiver.Rotel(folder, collector.endpoint)
            rotel.start()
            targets = [AtCollector(collector), AtStrict(strict), AtRotel(collector, rotel)]
        runs = [Run(target, protocol, compression, mode) for target in targets
                for mode in strict_receiver.MODES for compression in COMPRESSIONS
                for protocol in PROTOCOLS if target.can(protocol, compression, mode)]
        runs = [run for run in runs if re.search(pattern, run.name)]
        matrix = Matrix(program, folder, int(spans), int(seed), certificates)
        failed = 0
        for run in runs:
            try:
                matrix.run(run)
            except AssertionError as problem:
                failed += 1
                time.sleep(1)
                for target in targets[:2]:  # what came late is not the next run's
                    target.take_all()
                print(f"{run.name}: {str(problem)[:1500]}", flush=True)
        if pattern in ("", ALONE):
            check_that_others_are_refused(program, targets[:2], certificates)
        strict.stop()
    print(f"{len(runs) - failed} of {len(runs)} runs of {spans} spans are equal, {matrix.again} "
          f"spans of {matrix.compared} were compared by field again; {time.monotonic() - began:.1f} s")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
