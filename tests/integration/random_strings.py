#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random bytes in every string: real receivers refuse no request and have every span, by each
protocol.

usage: random_strings.py PATH-OF-RANDOM_STRINGS

The program is tests/stress/random_strings.c, whose head says what is random. With OTEL_TEST_LONG=1
there are a million strings for each protocol, otherwise 16,384.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import receiver  # noqa: E402

STRINGS = 1_000_000 if os.environ.get("OTEL_TEST_LONG") == "1" else 16_384
PATH = {"http/protobuf": "/v1/traces", "http/json": "/v1/traces", "grpc": ""}


def main():
    with tempfile.TemporaryDirectory(prefix="random_strings.") as folder:
        collector = receiver.Collector(folder)
        collector.start()
        seen = set()
        for protocol, path in PATH.items():
            done = subprocess.run(
                [sys.argv[1], str(STRINGS), collector.endpoint_of(protocol) + path, protocol],
                stdout=subprocess.PIPE, timeout=1000, check=True)
            sent = int(done.stdout.split()[-1])
            before = len(seen)
            seen |= {span["spanId"] for request in collector.requests()
                     for _, _, span in receiver.spans_of(request)}
            assert len(seen) - before == sent, f"{protocol}: {len(seen) - before} came of {sent}"
            print(f"{sent} spans with {STRINGS} random strings arrived by {protocol}")
        collector.stop()


if __name__ == "__main__":
    main()
