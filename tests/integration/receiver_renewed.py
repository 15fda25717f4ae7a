#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What leads to the collector changes under load, and the program goes on without a loss.

usage: receiver_renewed.py PATH-OF-STORM PATH-OF-MAKE_CERTIFICATES PROTOCOL mtls|unix

mtls: authority, server and client get new certificates, and the collector starts again with them.
Their files are replaced one after the other, so that for a moment they do not belong together.
unix: the collector is killed, its socket removed, and the next one makes another.
With OTEL_TEST_LONG=1 that happens a hundred times, otherwise twice.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import receiver  # noqa: E402

CHANGES = 100 if os.environ.get("OTEL_TEST_LONG") == "1" else 2
SECONDS_EACH = 1.0
SPANS_EACH = 6400
SETTINGS = {
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_BSP_MAX_QUEUE_SIZE": "500000",
    "OTEL_C_QUEUE_MAX_BYTES": "1000000000",
    "OTEL_EXPORTER_OTLP_TIMEOUT": "30000",
    "OTEL_BSP_EXPORT_TIMEOUT": "60000",
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


def count_received(collector, mode):
    return sum(1 for request in collector.take(mode) for _ in receiver.spans_of(request))


def change(collector, mode, make_certificates):
    if mode == "mtls":
        collector.stop()
        subprocess.run([make_certificates, str(collector.folder)], check=True)
    else:
        collector.kill()
        for kind in ("HTTP", "GRPC"):
            collector.addresses["unix", kind].unlink()
    collector.start()


def main():
    storm, make_certificates, protocol, mode = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="receiver_renewed.") as folder:
        collector = receiver.EveryWay(
            folder, receiver.Certificates(folder, make_certificates))
        collector.start()
        spans = (CHANGES + 1) * SPANS_EACH
        milliseconds = int((CHANGES + 1) * SECONDS_EACH * 1000)
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen([storm, f"{folder}/ids", str(spans), str(milliseconds)],
                                       env=environment_of(collector, protocol, mode),
                                       stdout=subprocess.PIPE, stderr=log)
        between = []
        for _ in range(CHANGES):
            time.sleep(SECONDS_EACH)
            if process.poll() is not None:  # it cannot end while the collector is away
                break
            between.append(count_received(collector, mode))
            change(collector, mode, make_certificates)
        out, _ = process.communicate(timeout=250)
        between.append(count_received(collector, mode))
        stats = json.loads(out)
        collector.stop()
        log = pathlib.Path(folder, "log").read_text()
    print(f"{protocol}, {mode}: {len(between) - 1} changes; {sum(between)} of {spans} spans "
          f"received, between the changes {between[:20]}")
    assert process.returncode == 0 and stats["delivered"] == stats["ended"] == spans, (stats, log)
    assert sum(between) >= spans, "spans counted as delivered are not there"
    assert len(between) > 1 and between[-1] > 0, "nothing arrived after the last change"


if __name__ == "__main__":
    main()
