#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Random bytes in every string: a real receiver refuses no request and has every span.

usage: random_strings.py PATH-OF-RANDOM_STRINGS

The program is tests/stress/random_strings.c, whose head says what is random. With
OTEL_TEST_LONG=1 there are a million strings, otherwise 65,536.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import receiver  # noqa: E402


def main():
    program = sys.argv[1]
    strings = 1_000_000 if os.environ.get("OTEL_TEST_LONG") == "1" else 65_536
    with tempfile.TemporaryDirectory(prefix="random_strings.") as folder:
        collector = receiver.Collector(folder)
        collector.start()
        done = subprocess.run([program, str(strings), collector.endpoint + "/v1/traces"],
                              stdout=subprocess.PIPE, text=True, timeout=100, check=True)
        sent = int(done.stdout.split()[-1])
        collector.stop()
        seen = {span["spanId"] for request in collector.requests()
                for _, _, span in receiver.spans_of(request)}
        assert len(seen) == sent, f"{len(seen)} spans arrived of {done.stdout}"
        print(f"{sent} spans with {strings} random strings arrived")


if __name__ == "__main__":
    main()
