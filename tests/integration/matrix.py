#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The same spans by every protocol, compression and way arrive equal at real receivers.

usage: matrix.py PATH-OF-SHAPES PATH-OF-MAKE_CERTIFICATES [SPANS [SEED [PATTERN]]]

A way is a port without TLS, with TLS, with TLS and a client's certificate, or a Unix socket.
The receiver is the OpenTelemetry Collector; where it can, Rotel stands before it. Everything is chosen
by environment variables, as users do.

shapes -r sends the same spans in each run. Those of the first run are compared with the journal of
what was asked for, field by field, and all others with the first. What
differs (only NaN may, which JSON has only one of) is compared with the journal again.

With OTEL_TEST_LONG=1 it is 100,000 spans a run. PATTERN is a regular expression for the names
of runs that are wanted, for example 'collector/grpc/.*/mtls'.

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
import collector_equal  # noqa: E402
import journal  # noqa: E402

PROTOCOLS = ("http/protobuf", "http/json", "grpc")
COMPRESSIONS = ("none", "gzip", "zstd")
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


# --- The comparison ----------------------------------------------------------

def digests(request):
    """(span id, digest of the span and all that it is part of)."""
    for resource_group, scope_group, span in receiver.spans_of(request):
        whole = [resource_group["resource"], resource_group.get("schemaUrl"),
                 scope_group.get("scope"), scope_group.get("schemaUrl"), span]
        yield span["spanId"], hashlib.blake2b(json.dumps(whole, sort_keys=True).encode(),
                                              digest_size=16).digest()


class Matrix:
    def __init__(self, program, folder, spans, seed, certificates):
        self.program, self.folder, self.count, self.seed = program, folder, spans, seed
        self.certificates = certificates
        self.resource = {name: value for name, value
                         in collector_equal.resource_of(program, 0).items() if name in RESOURCE}
        self.asked = self.statistics = None
        self.first = {}  # digests by span id
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
        self.compare(run.target.take(run, len(self.asked.lines)))

    def compare(self, requests):
        if not self.first:
            journal.equal("number of spans", self.compare_with_journal(requests),
                          len(self.asked.lines))
            self.first = {span_id: found for request in requests
                          for span_id, found in digests(request)}
        else:
            self.compare_with_first(requests)
        self.compared += len(self.asked.lines)

    def compare_with_first(self, requests):
        seen, others = set(), []
        for request in requests:
            differs = False
            for span_id, found in digests(request):
                assert span_id not in seen, f"span {span_id} came twice"
                assert span_id in self.first, f"nobody sent {span_id}"
                seen.add(span_id)
                if self.first[span_id] != found:
                    differs = True
                    self.again += 1
            if differs:
                others.append(request)
        journal.equal("number of spans", len(seen), len(self.first))
        self.compare_with_journal(others)

    def compare_with_journal(self, requests):
        return collector_equal.compare(self.asked, self.resource, requests, "")


def check_that_others_are_refused(program, target, certificates):
    """Without what a way demands nothing arrives, so the runs above mean something."""
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
        collector = receiver.EveryWay(folder, certificates)
        collector.start()
        rotel = receiver.Rotel(folder, collector.endpoint)
        rotel.start()
        targets = [AtCollector(collector), AtRotel(collector, rotel)]
        runs = [Run(target, protocol, compression, mode) for target in targets
                for mode in collector.MODES for compression in COMPRESSIONS
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
                targets[0].take_all()  # what came late is not the next run's
                print(f"{run.name}: {str(problem)[:1500]}", flush=True)
        if not pattern:
            check_that_others_are_refused(program, targets[0], certificates)
    print(f"{len(runs) - failed} of {len(runs)} runs of {spans} spans are equal, {matrix.again} "
          f"spans of {matrix.compared} were compared by field again; {time.monotonic() - began:.1f} s")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
