#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What leads to the collector changes under load, and the program goes on without a loss.

usage: receiver_renewed.py PATH-OF-STORM PATH-OF-MAKE_CERTIFICATES PROTOCOL mtls|unix

mtls: authority, server and client get new certificates, and the collector starts again with them.
Their files are replaced one after the other, so that for a moment they do not belong together.
unix: the collector is killed, its socket removed, and the next one makes another.
With OTEL_TEST_LONG=1 that happens a hundred times, otherwise twice: whenever so many spans more
have arrived. After the last time as many arrive again, and the program is told to end.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import receiver  # noqa: E402

CHANGES = 100 if os.environ.get("OTEL_TEST_LONG") == "1" else 2
SPANS_EACH = 5000
SPANS_PER_SECOND = 6400
MOST_SECONDS = 3600  # it is told to end long before
PATIENCE_SECONDS = 120
SETTINGS = {
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_BSP_MAX_QUEUE_SIZE": "500000",
    "OTEL_C_QUEUE_MAX_BYTES": "1000000000",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "300000",
    "OTEL_BSP_EXPORT_TIMEOUT": "300000",
    "OTEL_LOG_LEVEL": "debug",
}


def environment_of(collector, protocol, mode):
    certificates = collector.certificates
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update(
        SETTINGS, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint_of(protocol, mode))
    if mode == "mtls":
        environment.update(
            OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificates.authority),
            OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=str(certificates.client),
            OTEL_EXPORTER_OTLP_CLIENT_KEY=str(certificates.client_key))
    return environment


def change(collector, mode, make_certificates):
    if mode == "mtls":
        collector.stop()
        subprocess.run([make_certificates, str(collector.folder)], check=True)
    else:
        collector.kill()
        for kind in ("HTTP", "GRPC"):
            collector.addresses["unix", kind].unlink()
    collector.start()


class Storm:
    """The program, until it is told to end, and how many of its spans have arrived."""

    def __init__(self, program, collector, protocol, mode):
        self.collector, self.mode = collector, mode
        self.log = collector.folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, str(collector.folder / "ids"), str(MOST_SECONDS * SPANS_PER_SECOND),
                 str(MOST_SECONDS * 1000)], env=environment_of(collector, protocol, mode),
                stdout=subprocess.PIPE, stderr=log)

    def arrived(self):
        """Spans since the last call."""
        return sum(1 for request in self.collector.take(self.mode)
                   for _ in receiver.spans_of(request))

    def wait_for_spans(self):
        found, until = 0, time.monotonic() + PATIENCE_SECONDS
        while found < SPANS_EACH:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, f"only {found} spans:\n{self.log.read_text()}"
            time.sleep(0.02)
            found += self.arrived()
        return found

    def end(self):
        """Its statistics."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert self.process.returncode == 0, self.log.read_text()
        return json.loads(out)


def run(storm, make_certificates):
    between = []
    for _ in range(CHANGES):
        between.append(storm.wait_for_spans())
        change(storm.collector, storm.mode, make_certificates)
    between.append(storm.wait_for_spans())
    stats = storm.end()
    between[-1] += storm.arrived()
    return stats, between


def main():
    program, make_certificates, protocol, mode = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="receiver_renewed.") as folder:
        collector = receiver.EveryWay(
            folder, receiver.Certificates(folder, make_certificates))
        collector.start()
        storm = Storm(program, collector, protocol, mode)
        try:
            stats, between = run(storm, make_certificates)
        finally:
            storm.process.kill()
        collector.stop()
        log = storm.log.read_text()
    print(f"{protocol}, {mode}: {CHANGES} changes; {sum(between)} of {stats['ended']} spans "
          f"received, between the changes {between[:20]}")
    assert stats["delivered"] == stats["ended"] == stats["started"], (stats, log)
    assert sum(between) >= stats["ended"], "spans counted as delivered are not there"


if __name__ == "__main__":
    main()
