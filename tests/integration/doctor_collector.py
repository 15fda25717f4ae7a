#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""otel-doctor and the OpenTelemetry Collector: every protocol in every way, and ports mixed up.

usage: doctor_collector.py PATH-OF-OTEL-DOCTOR PATH-OF-MAKE-CERTIFICATES

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

PROTOCOLS = ("http/protobuf", "http/json", "grpc")


def ask(endpoint, protocol, **variables):
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C",
                   "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
                   "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
    environment.update({name: str(value) for name, value in variables.items()})
    done = subprocess.run([sys.argv[1], "--json"], env=environment, stdout=subprocess.PIPE,
                          timeout=200, check=False)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["healthy"] else 1), done
    print(f"{protocol}: {report['diagnosis']}")
    return report


def expect(rule, endpoint, protocol, **variables):
    report = ask(endpoint, protocol, **variables)
    assert report["rule"] == rule, (rule, report)
    return report


def spans_of(request):
    return [span for group in request["resourceSpans"] for scope in group["scopeSpans"]
            for span in scope["spans"]]


def check_healthy(collector, tls):
    for mode in collector.MODES:
        sent = {expect("healthy", collector.endpoint_of(protocol, mode), protocol,
                       **tls.get(mode, {}))["span"]["trace_id"] for protocol in PROTOCOLS}
        yield mode, sent


def check_broken(collector, tls):
    for mode in ("plain", "tls"):
        http = collector.endpoint_of("http/protobuf", mode)
        grpc = collector.endpoint_of("grpc", mode)
        expect("speech.grpc_port", grpc, "http/protobuf", **tls["tls"])
        expect("speech.grpc_port", grpc, "http/json", **tls["tls"])
        expect("speech.http_port", http, "grpc", **tls["tls"])
        expect("http.path_twice", http + "/v1/traces", "http/protobuf", **tls["tls"])
    for protocol in PROTOCOLS:
        plain = collector.endpoint_of(protocol)
        secure = collector.endpoint_of(protocol, "tls")
        expect("tls.plain", plain.replace("http:", "https:"), protocol, **tls["tls"])
        expect("speech.wants_tls", secure.replace("https:", "http:"), protocol)
        expect("tls.unknown_ca", secure, protocol)
        expect("tls.wants_certificate", collector.endpoint_of(protocol, "mtls"), protocol,
               **tls["tls"])


def main():
    with tempfile.TemporaryDirectory(prefix="doctor_collector.") as folder:
        certificates = receiver.Certificates(folder, sys.argv[2])
        collector = receiver.EveryWay(folder, certificates)
        collector.start()
        authority = {"OTEL_EXPORTER_OTLP_CERTIFICATE": certificates.authority}
        tls = {"tls": authority,
               "mtls": {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": certificates.client,
                        "OTEL_EXPORTER_OTLP_CLIENT_KEY": certificates.client_key, **authority}}
        sent = dict(check_healthy(collector, tls))
        check_broken(collector, tls)
        collector.stop()
        for mode in collector.MODES:
            spans = [span for request in collector.take(mode) for span in spans_of(request)]
            assert {span["traceId"] for span in spans} == sent[mode], (mode, sent, spans)
            assert len(spans) == len(PROTOCOLS), spans
            assert {span["name"] for span in spans} == {"otel-doctor test span"}, spans


main()
