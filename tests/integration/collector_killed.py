#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A collector that is killed and started again: what was delivered is there, and what is
not there was counted as lost.

usage: collector_killed.py PATH-OF-STORM [SPANS [SECONDS [SEED]]]

storm traces steadily while its collector is ended by kill -9 again and again. Then
    ended = delivered + rejected + the sum of dropped,
    the spans received contain all that were delivered,
    and those received beyond that are among the unconfirmed;
a span that came twice came in a request that was sent again whole.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import receiver  # noqa: E402

SETTINGS = {
    "OTEL_SERVICE_NAME": "storm",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_BSP_MAX_QUEUE_SIZE": "15000",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "64",  # so that a kill often hits a request
    "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
    "OTEL_LOG_LEVEL": "none",
}


def wait_for_a_write(file, seconds):
    """Return the moment that the collector has written a request and not yet answered it."""
    until = time.monotonic() + seconds
    size = file.stat().st_size if file.exists() else 0
    while time.monotonic() < until:
        if file.exists() and file.stat().st_size != size:
            return


def kill_and_restart(collector, process, chance):
    """Until the program ends. The collector is up when it does, or soon after."""
    while process.poll() is None:
        time.sleep(chance.uniform(0.3, 1.5))
        wait_for_a_write(collector.files[-1], 0.1)
        collector.kill()
        time.sleep(chance.choice([0, 0.2, 1, 3]))
        collector.start()


def storm(program, folder, collector, spans, seconds, chance):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update(SETTINGS, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)
    process = subprocess.Popen([program, f"{folder}/ids", str(spans), str(seconds)],
                               env=environment, stdout=subprocess.PIPE)
    try:
        kill_and_restart(collector, process, chance)
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0, f"{program} ended with {process.returncode}"
    ids = pathlib.Path(folder, "ids").read_bytes()
    return json.loads(out), {ids[at:at + 8].hex() for at in range(0, len(ids), 8)}


def read(collector):
    """Every span id that was received, and how many came again."""
    received, requests, again = set(), set(), 0
    for request in collector.requests():
        ids = frozenset(span["spanId"] for _, _, span in receiver.spans_of(request))
        if ids & received:
            assert ids in requests, "a span came twice, but its request did not"
            again += len(ids)
        requests.add(ids)
        received |= ids
    return received, again


def main():
    program = sys.argv[1]
    spans, seconds, seed = (int(sys.argv[i]) if len(sys.argv) > i else default
                            for i, default in ((2, 200_000), (3, 16), (4, 1)))
    with tempfile.TemporaryDirectory(prefix="collector_killed.") as folder:
        collector = receiver.Collector(folder)
        collector.start()
        stats, ended = storm(program, folder, collector, spans, seconds, random.Random(seed))
        collector.stop()
        received, again = read(collector)

    lost = sum(stats["dropped"].values())
    unconfirmed = stats["dropped"]["unconfirmed"]
    reasons = {reason: count for reason, count in stats["dropped"].items() if count}
    print(f"{collector.starts} collectors; {stats['ended']} spans ended, {stats['delivered']} "
          f"delivered, {len(received)} received, {again} of them again; lost {reasons}")
    assert stats["started"] == stats["ended"] == len(ended) == spans, stats
    assert stats["open"] == stats["queued"] == 0, stats
    assert stats["delivered"] + stats["rejected"] + lost == stats["ended"], stats
    assert stats["delivered"] > 0 and lost > 0, "neither all nor nothing may be lost here"
    assert received <= ended, "spans were received that nobody ended"
    assert len(received) >= stats["delivered"], "spans counted as delivered are not there"
    assert len(received) - stats["delivered"] <= unconfirmed, "spans are there but counted lost"
    allowed = {"queue_full", "retry_exhausted", "unconfirmed", "shutdown_timeout"}
    assert set(reasons) <= allowed, reasons


if __name__ == "__main__":
    main()
