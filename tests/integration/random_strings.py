#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random bytes in every string: real receivers refuse no request and have every span, by each
protocol.

usage: random_strings.py PATH-OF-RANDOM_STRINGS PATH-OF-MAKE_CERTIFICATES

The program is tests/stress/random_strings.c, whose head says what is random. The receivers are
the collector, and one that takes nothing but what OTLP says (support/strict_receiver.py). With
OTEL_TEST_LONG=1 there are a million strings for each, otherwise 16,384.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import receiver  # noqa: E402

receiver.run_with_peers()
import strict_receiver  # noqa: E402

STRINGS = 1_000_000 if os.environ.get("OTEL_TEST_LONG") == "1" else 16_384
PATH = {"http/protobuf": "/v1/traces", "http/json": "/v1/traces", "grpc": ""}


def check(program, target, protocol, take):
    done = subprocess.run(
        [program, str(STRINGS), target.endpoint_of(protocol) + PATH[protocol], protocol],
        stdout=subprocess.PIPE, timeout=1000, check=True)
    sent = int(done.stdout.split()[-1])
    seen = take()
    assert len(seen) == sent, f"{protocol}: {len(seen)} spans arrived of {sent}"
    return sent


def main():
    program, make_certificates = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="random_strings.") as folder:
        certificates = receiver.Certificates(folder, make_certificates)
        collector = receiver.EveryWay(folder, certificates)
        collector.start()
        strict = strict_receiver.StrictReceiver(folder, certificates)
        strict.start()

        def at_collector():
            return {span["spanId"] for request in collector.take("plain")
                    for _, _, span in receiver.spans_of(request)}

        def at_strict():
            assert not strict.faults, f"refused: {strict.faults[:3]}"
            return {span.span_id for request in strict.take()
                    for resource_group in request.message.resource_spans
                    for scope_group in resource_group.scope_spans for span in scope_group.spans}

        for protocol in PATH:
            for target, take in (collector, at_collector), (strict, at_strict):
                sent = check(program, target, protocol, take)
                print(f"{type(target).__name__}: {sent} spans with {STRINGS} random strings "
                      f"arrived by {protocol}")
        strict.stop()
        collector.stop()


if __name__ == "__main__":
    main()
