#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with a spool is killed with -9 and started again, again and again, while its receiver
is away, comes back, breaks connections off, and goes: every span that the exporter had taken arrives.

    spool_killed.py SPOOL_CHILD

Spans have names with numbers in them, which stand in requests as they are.

spec: X25
"""
import http.server
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

RUNS = 8
SPANS_AT_LEAST = 100
PATIENCE_SECONDS = 120
NAME = re.compile(rb"span-(\d\d)-(\d{7})")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import receiver  # noqa: E402


class Sink:
    """A receiver that can go away, and break connections off when it has read a request."""

    def __init__(self, port):
        self.port = port
        self.answered = {}  # span: how often
        self.unanswered = set()
        self.breaks_off = False
        self.server = None

    def start(self):
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                names = [found.group(0) for found in NAME.finditer(body)]
                if sink.breaks_off or sink.server is None:
                    sink.unanswered.update(names)
                    self.close_connection = True
                    return
                for name in names:
                    sink.answered[name] = sink.answered.get(name, 0) + 1
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        http.server.ThreadingHTTPServer.allow_reuse_address = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        server, self.server = self.server, None
        server.shutdown()
        server.server_close()


def trace_and_kill(child, environment, run, path, dice):
    path.write_bytes(bytes(8))

    def handed():
        return struct.unpack("=Q", path.read_bytes())[0]

    process = subprocess.Popen([child, "trace", f"{run:02}", str(path)], env=environment)
    until = time.monotonic() + PATIENCE_SECONDS
    try:
        while handed() < SPANS_AT_LEAST:
            assert process.poll() is None, f"run {run} ended by itself"
            assert time.monotonic() < until, f"run {run} has handed over {handed()} spans only"
            time.sleep(0.005)
        time.sleep(dice.random() * 0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    return handed()


def main():
    child = sys.argv[1]
    seed = random.randrange(1 << 32) if os.environ.get("OTEL_TEST_LONG") == "1" else 1
    seed = int(os.environ.get("OTEL_TEST_SEED", seed))
    print(f"OTEL_TEST_SEED={seed}", flush=True)
    dice = random.Random(seed)
    (port,) = receiver.free_ports(1)
    sink = Sink(port)
    with tempfile.TemporaryDirectory() as folder:
        spool = pathlib.Path(folder) / "spool"
        spool.mkdir()
        environment = {**{name: value for name, value in os.environ.items()
                          if not name.startswith("OTEL_")}, "OTEL_TRACES_EXPORTER": "otlp",
                       "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
                       "OTEL_C_SPOOL_DIR": str(spool)}
        handed = []
        for run in range(RUNS):
            if run in (3, 6):
                sink.breaks_off = run == 6
                sink.start()
            handed.append(trace_and_kill(child, environment, run, pathlib.Path(folder) / "handed",
                                         dice))
            if sink.server is not None:
                sink.stop()
        sink.breaks_off = False
        sink.start()
        drained = subprocess.run([child, "drain"], env=environment, stdout=subprocess.PIPE,
                                 timeout=PATIENCE_SECONDS * 2)
        print(drained.stdout.decode().strip(), f"handed over {sum(handed)}")
        sink.stop()
        assert drained.returncode == 0, "the spool does not get empty"
        statistics = json.loads(drained.stdout)
        assert statistics["torn"] == 0 and statistics["evicted"] == 0, statistics
        assert list(spool.rglob("*.otlp")) == []

        missing = [name for run, count in enumerate(handed) for number in range(count)
                   if (name := b"span-%02d-%07d" % (run, number)) not in sink.answered]
        assert not missing, f"{len(missing)} of {sum(handed)} are missing, {missing[0]} is the first"
        # Whoever is killed between the answer and the removal of a file sends it once more.
        twice = sum(count - 1 for count in sink.answered.values())
        print(f"{len(sink.answered)} arrived; {twice} of them once more; "
              f"{len(sink.unanswered)} were read and not answered")
        assert max(sink.answered.values()) <= 3


main()
