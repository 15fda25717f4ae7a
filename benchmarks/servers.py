#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tracing costs a server that people run: CPU time a request, by thread.

    servers.py nginx|redis BUILD-FOLDER [--quick] [--rounds N] [--account] [--rival MODULE.so HOST:PORT]

scripts/bench.sh calls it; docs/PERFORMANCE.md ("In servers") says what the figures mean. Every case is
a server of its own. All of them run side by side, pinned, and are loaded in turn, a second each, in
changing order; a few generations of them, because where its memory lies makes a process faster or
slower for life. CPU time is what the kernel has counted for each thread (/proc/PID/task/TID/schedstat)
from the start of a server's slice to the start of its next: what is exported late is in it.
"""
import argparse
import atexit
import collections
import json
import pathlib
import random
import statistics
import sys
import time

import servers_account
from servers_kinds import BATCH_S, KINDS


def spread(numbers):
    """[least, lower quartile, median, upper quartile]"""
    return [round(number) for number in (min(numbers), *statistics.quantiles(numbers, n=4, method="inclusive"))]


def per_request(each, *threads):
    return sum(each[thread] for thread in threads) / each["requests"]


def print_case(bench, name, slices, bare, sums):
    line = {"bench": bench, "case": name, "slices": len(slices),
            "requests_per_s": spread([each["requests"] / each["seconds"] for each in slices])}
    for key, threads in (("cpu", ("worker", "exporter")), ("worker", ("worker",)), ("exporter", ("exporter",))):
        ours, theirs = (spread([per_request(each, *threads) for each in which]) for which in (slices, bare))
        line[f"{key}_ns"] = ours
        if key != "exporter" and name != "bare":
            line[f"{key}_increase_percent"] = [round(100 * (our / their - 1), 1) for our, their in zip(ours, theirs)]
    print(json.dumps(line | sums), flush=True)


def measure(options, kind):
    tools = kind.build(options)
    cases = ["bare", "all"] if options.account else list(kind.cases)
    cases += ["rival"] if options.rival else []
    slices, profiles = collections.defaultdict(list), collections.defaultdict(list)
    sums = collections.defaultdict(collections.Counter)
    generations = 1 if options.quick else 4
    for generation in range(generations):
        servers = []
        atexit.register(lambda those: [server.process.terminate() for server in those], servers)
        for case in cases:
            servers.append(kind(case, options, tools))
        for round_number in range(-1, -(-options.rounds // generations)):
            for server in random.sample(servers, len(servers)):
                server.slice(1)
                if options.account and round_number >= 0:
                    server.profile(1)
        time.sleep(BATCH_S)
        for server in servers:
            sums[server.name].update(server.end())
            slices[server.name] += server.slices[1:]  # the first one is warming up
            profiles[server.name] += server.profiles
        print(f"servers.py: {generation + 1} of {generations}", file=sys.stderr)
    for case in cases:
        print_case(options.name, case, slices[case], slices["bare"], sums[case])
    for case in cases[1:] if options.account else []:
        for thread in ("worker", "exporter"):
            if not any(each[thread] for each in slices[case]):
                continue  # the worker exports
            counted = [[collections.Counter({thread: per_request(each, thread)}) for each in slices[which]]
                       for which in (case, "bare")]
            ours_ns, bare_ns = (servers_account.quiet_mean(counts)[thread] for counts in counted)
            servers_account.print_thread({"bench": options.name, "case": case, "thread": thread}, thread == "worker",
                                         profiles[case], profiles["bare"], ours_ns - bare_ns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=KINDS)
    parser.add_argument("build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--account", action="store_true")
    parser.add_argument("--rival", nargs=2, metavar=("MODULE.so", "HOST:PORT"))
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 32)
    measure(options, KINDS[options.name])


if __name__ == "__main__":
    main()
