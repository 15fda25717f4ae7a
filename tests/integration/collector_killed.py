#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A collector that is killed and started again: what was delivered is there, and what is
not there was counted as lost. With a spool nothing is lost, though the program dies, too.

usage: collector_killed.py PATH-OF-STORM PROTOCOL [spool] [seed=N] [spans=N] [seconds=N]

storm traces steadily while its collector is ended by kill -9 again and again. Then
    ended = delivered + rejected + spooled + the sum of dropped,
    the spans received contain all that were delivered,
    and those received beyond that are among the unconfirmed;
a span that came twice came in a request that was sent again whole, and no end of a process
makes more than one of those: who ends while it sends from disk breaks that request off.

With `spool` requests go to disk while the collector is away, and the program is killed, too,
and started again. Then no span is lost that had been delivered or put to disk, as far as the
program itself knew a millisecond before the kill; so one that ends by itself loses none. What is
still on disk at the end is sent by programs that trace nothing.

With OTEL_TEST_LONG=1 there are a million spans and more than twenty kills.
"""
import collections
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import receiver  # noqa: E402

IS_LONG = os.environ.get("OTEL_TEST_LONG") == "1"
SHORT = {"spans": 100_000, "seconds": 5, "kills": 1, "lives": 3, "seed": 1, "queue": 4096}
LONG = {"spans": 1_000_000, "seconds": 70, "kills": 20, "lives": 8, "seed": 1, "queue": 15_000}
UP_SECONDS = (0.3, 1.5) if IS_LONG else (0.6, 1.4)
DOWN_SECONDS = (0, 0.2, 1, 3) if IS_LONG else (0, 0.2, 0.7)
THREADS = 16
SWEEP_SECONDS = 5 if IS_LONG else 1
IDLE_SWEEPS = 10  # on a busy machine a second may be too short to look at the spool once
SETTINGS = {
    "OTEL_SERVICE_NAME": "storm",
    "OTEL_BSP_SCHEDULE_DELAY": "100",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "64",  # so that a kill often hits a request
    "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
    "OTEL_LOG_LEVEL": "none",
}
SPOOL_SETTINGS = {
    "OTEL_BSP_MAX_QUEUE_SIZE": "100000",
    "OTEL_C_QUEUE_MAX_BYTES": str(64 << 20),
    "OTEL_C_SPOOL_MAX_BYTES": str(2 << 30),
    "OTEL_EXPORTER_OTLP_TIMEOUT": "60000",
}
Counts = collections.namedtuple("Counts", "is_whole ended delivered spooled rejected dropped")


class Killer(threading.Thread):
    """Kills the collector and starts it again, until it is told to stop; then it is up. It has had
    spans before, and the first time it is away until some are lost or on disk."""

    def __init__(self, collector, chance):
        super().__init__()
        self.collector, self.chance = collector, chance
        self.life = None  # the one that is traced now
        self.is_over = threading.Event()
        self.kills = 0

    def run(self):
        self._wait_until(lambda counts: counts.delivered > 0)
        while not self.is_over.wait(self.chance.uniform(*UP_SECONDS)):
            self._wait_for_a_write(0.1)
            self.collector.kill()
            self.kills += 1
            if self.kills == 1:
                self._wait_until(lambda counts: counts.dropped + counts.spooled > 0)
            self.is_over.wait(self.chance.choice(DOWN_SECONDS))
            self.collector.start()

    def _wait_until(self, condition):
        while self.life is None or not condition(self.life.read_counts()):
            if self.is_over.wait(0.02):
                break

    def _wait_for_a_write(self, seconds):
        """Return the moment that a request is written and not yet answered."""
        file = self.collector.files[-1]
        until = time.monotonic() + seconds
        size = file.stat().st_size if file.exists() else 0
        while time.monotonic() < until:
            if file.exists() and file.stat().st_size != size:
                return

    def stop(self):
        self.is_over.set()
        self.join()


class Life:
    """One process of the program, and what it left behind."""

    def __init__(self, program, path, spans, seconds, environment):
        self.path = path
        self.spans = spans // THREADS * THREADS
        self.process = subprocess.Popen(
            [program, str(path), str(self.spans), str(int(seconds * 1000))], env=environment,
            stdout=subprocess.PIPE)
        self.stats = None  # of one that was killed

    def finish(self, seconds):
        try:
            out, _ = self.process.communicate(timeout=seconds + 240)
        finally:
            self.process.kill()
        assert self.process.returncode == 0, f"storm ended with {self.process.returncode}"
        self.stats = json.loads(out)

    def kill(self):
        """It may have ended by itself, where nobody looked for so long."""
        self.process.kill()
        out, _ = self.process.communicate()
        if self.process.returncode != -signal.SIGKILL:
            assert self.process.returncode == 0, f"storm ended with {self.process.returncode}"
            self.stats = json.loads(out)

    def read(self):
        """Sets the ids of its spans, and for one that was killed, what it had counted."""
        content = self.path.read_bytes()
        size = self.spans * 8
        ids = (content[at:at + 8] for at in range(0, size, 8))
        self.ids = {one.hex() for one in ids if any(one)}
        self.counts = self.read_counts()

    def read_counts(self):
        """While it runs, they may be of two moments."""
        if not self.path.exists():
            return Counts(0, 0, 0, 0, 0, 0)
        with open(self.path, "rb") as file:
            file.seek(self.spans * 8)
            found = file.read(96).ljust(96, b"\0")
        halves = [Counts(*struct.unpack("<6Q", found[at:at + 48])) for at in (0, 48)]
        whole = [half for half in halves if half.is_whole]
        return max(whole, key=lambda one: one.ended) if whole else Counts(0, 0, 0, 0, 0, 0)


def environment_of(collector, protocol, queue, spool):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("OTEL_")}
    environment.update(SETTINGS, OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                       OTEL_BSP_MAX_QUEUE_SIZE=str(queue),
                       OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint_of(protocol))
    if spool is not None:
        environment.update(SPOOL_SETTINGS, OTEL_C_SPOOL_DIR=str(spool))
    return environment


def live(program, folder, sizes, environment, chance, killer):
    """The program's lives: all but the last end by kill -9. Together they trace all spans, unless
    one has ended before it was killed: then that is the last."""
    lives, left = [], sizes["spans"]
    for number in range(sizes["lives"]):
        seconds = sizes["seconds"] * left / sizes["spans"]
        life = Life(program, folder / f"life-{number}", left, seconds, environment)
        lives.append(life)
        killer.life = life
        if number == sizes["lives"] - 1:
            life.finish(seconds)
        else:
            time.sleep(sizes["seconds"] / sizes["lives"] * chance.uniform(0.6, 1.1))
            life.kill()
        life.read()
        left -= len(life.ids)
        if life.stats is not None:
            break
    return lives


def files_in(spool):
    """Whole ones: what a program was writing when it was killed stays for a minute."""
    return list(spool.rglob("*.otlp"))


def sweep(program, folder, spool, environment):
    """Programs that trace nothing, until they have sent all that is on disk."""
    number, idle, left = 0, 0, len(files_in(spool))
    while left > 0:
        life = Life(program, folder / f"sweep-{number}", 0, SWEEP_SECONDS, environment)
        life.finish(SWEEP_SECONDS)
        for what in ("refused", "expired", "evicted", "torn", "failures"):
            assert life.stats["spool"][what] == 0, life.stats["spool"]
        before, left = left, len(files_in(spool))
        idle = 0 if left < before else idle + 1
        assert idle < IDLE_SWEEPS, f"nobody sends {files_in(spool)[:5]}: {life.stats['spool']}"
        number += 1
    return number


def read(collector):
    """Every span id that was received, and how many requests and spans came again."""
    received, requests, again_requests, again = set(), set(), 0, 0
    for request in collector.requests():
        ids = frozenset(span["spanId"] for _, _, span in receiver.spans_of(request))
        if ids & received:
            assert ids in requests, "a span came twice, but its request did not"
            again_requests += 1
            again += len(ids)
        requests.add(ids)
        received |= ids
    return received, again_requests, again


def check_sums(life):
    stats = life.stats
    lost = sum(stats["dropped"].values())
    assert stats["started"] == stats["ended"] == len(life.ids) == life.spans, stats
    assert stats["open"] == stats["queued"] == 0, stats
    assert (stats["delivered"] + stats["rejected"] + stats["spooled"] + lost
            == stats["ended"]), stats


def check_without_spool(life, received):
    stats = life.stats
    unconfirmed = stats["dropped"]["unconfirmed"]
    reasons = {reason: count for reason, count in stats["dropped"].items() if count}
    print(f"{stats['ended']} spans ended, {stats['delivered']} delivered, lost {reasons}")
    check_sums(life)
    assert stats["delivered"] > 0 and reasons, "neither all nor nothing may be lost here"
    assert stats["spooled"] == 0, stats
    assert len(received) >= stats["delivered"], "spans counted as delivered are not there"
    assert len(received) - stats["delivered"] <= unconfirmed, "spans are there but counted lost"
    allowed = {"queue_full", "retry_exhausted", "unconfirmed", "shutdown_timeout"}
    assert set(reasons) <= allowed, reasons


def check_with_spool(lives, received):
    settled = spooled = 0
    for life in lives[:-1]:
        counts = life.counts
        there = len(life.ids & received)
        kept = counts.delivered + counts.spooled
        assert counts.dropped == counts.rejected == 0, counts
        assert there >= kept, f"{kept - there} spans are missing that were settled: {counts}"
        settled += kept
        spooled += counts.spooled
        print(f"killed: {len(life.ids)} spans ended, {kept} of them settled, "
              f"{counts.spooled} on disk; {there} received")
    stats = lives[-1].stats
    check_sums(lives[-1])
    assert sum(stats["dropped"].values()) == stats["rejected"] == 0, stats
    missing = len(lives[-1].ids - received)
    print(f"ended: {stats['ended']} spans, {stats['spooled']} on disk; {missing} missing")
    assert missing == 0, f"{missing} spans are missing, though none was counted as lost"
    assert spooled + stats["spooled"] > 0, "the spool was of no use"
    assert settled + stats["ended"] > 0


def arguments():
    program, protocol, *rest = sys.argv[1:]
    sizes = dict(LONG if IS_LONG else SHORT)
    for word in rest:
        if word != "spool":
            name, number = word.split("=")
            sizes[name] = int(number)
    if "spool" not in rest:
        sizes["lives"] = 1
    return program, protocol, "spool" in rest, sizes


def main():
    program, protocol, with_spool, sizes = arguments()
    chance = random.Random(sizes["seed"])
    with tempfile.TemporaryDirectory(prefix="collector_killed.") as folder:
        folder = pathlib.Path(folder)
        spool = folder / "spool" if with_spool else None
        if spool:
            spool.mkdir()
        collector = receiver.Collector(folder)
        collector.start()
        environment = environment_of(collector, protocol, sizes["queue"], spool)
        killer = Killer(collector, random.Random(chance.random()))
        killer.start()
        try:
            lives = live(program, folder, sizes, environment, chance, killer)
        finally:
            killer.stop()
        sweeps = sweep(program, folder, spool, environment) if spool else 0
        collector.stop()
        received, again_requests, again = read(collector)

    ids = set().union(*(life.ids for life in lives))
    print(f"{protocol}: the collector was killed {killer.kills} times, the program "
          f"{len(lives) - 1} times; {len(received)} of {len(ids)} spans received, {again} of them "
          f"again; {sweeps} programs more sent what was left on disk")
    assert received <= ids, "spans were received that nobody ended"
    assert killer.kills >= sizes["kills"], f"only {killer.kills} kills"
    ends = killer.kills + (len(lives) + sweeps if with_spool else 0)
    assert again_requests <= ends, f"{again_requests} requests came again, {ends} processes ended"
    if with_spool:
        check_with_spool(lives, received)
    else:
        check_without_spool(lives[0], received)


if __name__ == "__main__":
    main()
