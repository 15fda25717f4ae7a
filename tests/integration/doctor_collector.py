#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""otel-doctor and the OpenTelemetry Collector: every protocol, and the two ports mixed up.

usage: doctor_collector.py PATH-OF-OTEL-DOCTOR

Exits 77 where there is no collector (scripts/setup.sh --collector makes it).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import receiver


def ask(doctor, endpoint, protocol):
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C",
                   "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
                   "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    done = subprocess.run([doctor, "--json"], env=environment, stdout=subprocess.PIPE, timeout=60,
                          check=False)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["healthy"] else 1), done
    return report


def spans_of(request):
    return [span for group in request["resourceSpans"] for scope in group["scopeSpans"]
            for span in scope["spans"]]


def main():
    doctor = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="doctor_collector.") as folder:
        collector = receiver.Collector(folder)
        collector.start()
        http = f"http://127.0.0.1:{collector.http_port}"
        grpc = f"http://127.0.0.1:{collector.grpc_port}"
        sent = set()
        for endpoint, protocol, rule in (
                (http, "http/protobuf", "healthy"), (http, "http/json", "healthy"),
                (grpc, "grpc", "healthy"), (grpc, "http/protobuf", "speech.grpc_port"),
                (grpc, "http/json", "speech.grpc_port"), (http, "grpc", "speech.http_port"),
                (http + "/v1/traces", "http/protobuf", "http.path_twice")):
            report = ask(doctor, endpoint, protocol)
            print(f"{protocol}: {report['diagnosis']}")
            assert report["rule"] == rule, (rule, report)
            if report["healthy"]:
                sent.add(report["span"]["trace_id"])
        collector.stop()
        spans = [span for request in collector.requests() for span in spans_of(request)]
        assert {span["traceId"] for span in spans} == sent, (sent, spans)
        assert len(spans) == len(sent) == 3, spans
        assert {span["name"] for span in spans} == {"otel-doctor test span"}, spans


main()
