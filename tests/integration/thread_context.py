#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Starts a program that plays the scene of thread_context_scene.h, and reads it from outside at
each of its points.

    thread_context.py WAY OBJECT PROGRAM [PLUGIN]

WAY is how the variable is to be found: linker or offset; or invisible. OBJECT is a part of the
name of the file that is to define it, or "-".
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from context_reader import Fault, Reader, demand  # noqa: E402

POINTS_AT_LEAST = 25
UNSUPPORTED = 8  # OTEL_ERROR_UNSUPPORTED


class Scene:
    def __init__(self, way, part):
        self.way = way
        self.part = "" if part == "-" else part
        self.last = None  # process, and when it published its context

    def check_thread(self, reader, thread, expected):
        way = reader.variable(thread)
        if self.way == "invisible":
            demand(way is None, f"thread {thread} is visible")
            return
        demand(way is not None, f"thread {thread} is invisible")
        place, is_by_linker, name = way
        record = reader.record(place)
        demand(record == expected, f"thread {thread} has {record} instead of {expected}")
        if record == "none":
            return
        demand(is_by_linker == (self.way == "linker"), f"it is not found by {self.way}")
        demand(self.part in name, f"it is found in {name}, and not in {self.part}")
        try:
            other = reader.record(place + 8)
        except Fault:
            return
        demand(other != expected, f"thread {thread} has the same eight bytes further on")

    def check_process(self, reader, process, service):
        context = reader.context()
        if service == "none":
            demand(context is None, f"the process has a context: {context}")
            return
        demand(context is not None, "the process has no context")
        published, name, schema, count = context
        demand((name, schema) == (service, "tlsdesc_v1_dev"), f"it is {name}, schema {schema}")
        demand(count >= 4, f"the resource has only {count} attributes")
        if self.last:
            demand((process == self.last[0]) == (published == self.last[1]),
                   "it was published again, or the child has what its parent had published")
        self.last = process, published

    def check_point(self, line):
        _, process, service, status, *threads = line.split()
        spoken_of = dict(thread.split(":", 1) for thread in threads)
        with Reader(int(process)) as reader:
            self.check_process(reader, process, service)
            for thread, expected in spoken_of.items():
                self.check_thread(reader, int(thread), expected)
            # Threads that the scene does not speak of are otel-c's, and have nothing.
            for thread in reader.pointers:
                if str(thread) not in spoken_of and self.way != "invisible":
                    self.check_thread(reader, thread, "none")
        demand(int(status) == (UNSUPPORTED if self.way == "invisible" else 0),
               f"the selftest answers {status}")


def main():
    scene = Scene(*sys.argv[1:3])
    points = faults = 0
    with subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        for line in program.stdout:
            if line == "done\n":
                break
            points += 1
            try:
                scene.check_point(line)
            except Fault as fault:
                faults += 1
                print(f"{line.split()[0]}: {fault}", file=sys.stderr)
            program.stdin.write("go\n")
            program.stdin.flush()
        else:
            faults += 1
            print("the scene ended early", file=sys.stderr)
    print(f"{points} points, {faults} faults, exit {program.returncode}")
    return faults > 0 or points < POINTS_AT_LEAST or program.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
