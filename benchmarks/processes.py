#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What otel-c costs programs of a few milliseconds, and a process for each connection.

    processes.py BUILD-FOLDER [--quick] [--rounds N]

scripts/bench.sh calls it. A line for each case has the quartiles of the time and of the processor time
of a run (posix_spawn and wait4), or of a connection (fork and wait4), in microseconds. For a start, they are of
the one call, with the least of all, and of the most memory that was resident in the end. The cases run in turn;
spans by OTLP go to a sink on loopback.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = {"bare": ("bare",), "api": ("api",), "linked": ("otel", "linked"),
        "threadless": ("otel", "threadless"), "thread": ("otel", "thread"), "static": ("otel-static", "threadless"),
        "file": ("sdk", "FILE"), "file_static": ("sdk-static", "FILE"), "file_alone": ("sdk-alone", "FILE")}
CONNECTIONS = {"connection_bare": ("bare", "bare"), "connection_postmaster": ("otel", "postmaster"),
               "connection_backend": ("otel", "backend")}
STARTS = {"start": "otel", "start_after_curl": "later", "curl": "curl"}
AT_ONCE = 10  # connections of a process


def run(command, env):
    """[(seconds, seconds of processor)]"""
    begin = time.monotonic()
    pid = os.posix_spawn(command[0], command, env)
    _, status, used = os.wait4(pid, 0)
    took = time.monotonic() - begin
    if status != 0:
        sys.exit(f"{command}: status {status}")
    return [(took, used.ru_utime + used.ru_stime)]


def serve(command, env):
    """The same for each connection."""
    said = subprocess.run([*command, str(AT_ONCE)], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(int(number) / 1e9 for number in line.split()) for line in said.splitlines()]


def start(command, env):
    """The same for its first call, and the resident memory in MiB."""
    said = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    return [(int(said[0]) / 1e9, int(said[1]) / 1e9, int(said[2]) / 1024)]


def quartiles(seconds):
    return [round(1e6 * value) for value in statistics.quantiles(seconds, n=4, method="inclusive")]


def figures(taken):
    wall, cpu, *resident = zip(*taken)
    found = {"wall_us": quartiles(wall), "cpu_us": quartiles(cpu)}
    if resident:
        found |= {"least_wall_us": round(1e6 * min(wall)), "least_cpu_us": round(1e6 * min(cpu)),
                  "rss_mib": round(statistics.median(resident[0]), 1)}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=150)
    options = parser.parse_args()
    rounds = 2 if options.quick else options.rounds
    programs = options.build.resolve() / "benchmarks"
    taken = {case: [] for case in [*RUNS, *CONNECTIONS, *STARTS]}
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            [programs / "bench-servers"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sink:
        env = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": sink.stdout.readline().strip(), "OTEL_LOG_LEVEL": "warn"}
        for _ in range(rounds):
            for case, measure in [*((case, run) for case in RUNS), *((case, serve) for case in CONNECTIONS)]:
                name, *words = {**RUNS, **CONNECTIONS}[case]
                words = [word.replace("FILE", f"{folder}/spans") for word in words]
                taken[case] += measure([str(programs / f"bench-process-{name}"), *words], env)
            for case, name in STARTS.items():
                taken[case] += start([str(programs / f"bench-start-{name}"),
                                      env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]], env)
        sink.stdin.close()
    for case, runs in taken.items():
        print(json.dumps({"bench": "processes", "case": case, "runs": len(runs), **figures(runs)}))


if __name__ == "__main__":
    main()
