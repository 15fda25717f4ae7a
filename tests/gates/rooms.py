#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may use whom: the table of rooms in docs/ARCHITECTURE.md, held against the code.

    rooms.py BUILD              check the sources, and the objects of a build
    rooms.py BUILD --list       print what each room uses, as the table has it

A file uses another one when it includes it, or when its object refers to a symbol that the other's
object defines; calls of public functions between libraries are everybody's. Between files there is
no circle, but for those in tests/gates/circles.list; between rooms only what the table allows.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("OTEL_GATE_ROOT", pathlib.Path(__file__).resolve().parents[2]))
TOPS = "api", "common", "config", "exporters", "functions", "profiling", "sdk"
ROW = re.compile(r"^\| `([a-z_/]+)` \| `([\w.]+)` \| (.*) \|$", re.M)


def room_of(path):
    return str(pathlib.PurePath(path).parent)


def is_free(room, other):
    """Everybody may use common, but for the rooms in it."""
    return other.startswith("common") and not room.startswith("common")


def sources():
    listed = subprocess.check_output(["git", "-C", ROOT, "ls-files", *TOPS], text=True).split()
    return [path for path in listed if path.endswith((".c", ".h", ".S"))]


def includes(files):
    """(file, file, what for) of each #include."""
    known = set(files)
    for path in files:
        for name in re.findall(r'^\s*#\s*include "([^"]+)"', (ROOT / path).read_text(), re.M):
            if name in known:
                yield path, name, "#include"


def calls(files, build):
    """(file, file, symbol) of each reference from one object to another."""
    defined, wanted = {}, collections.defaultdict(set)
    known = set(files)
    for made in sorted(build.rglob("otel-objects-*.dir/**/*.o")):
        top, _, rest = str(made.relative_to(build)).partition("/CMakeFiles/")
        source = str(pathlib.PurePath(top, *pathlib.PurePath(rest).parts[1:]))[:-len(".o")]
        if source not in known:
            continue
        for line in subprocess.check_output(["nm", "-P", made], text=True).splitlines():
            name, kind = line.split()[:2]
            if kind == "U":
                wanted[source].add(name)
            elif kind in "TDBRVW":
                defined.setdefault(name, source)
    for source, names in wanted.items():
        for name in sorted(names):
            user_of = defined.get(name, source)
            is_public = name.startswith("otel_") and user_of.split("/")[0] != source.split("/")[0]
            if user_of != source and not is_public:
                yield source, user_of, name


def circles(uses):
    """The strongly connected parts of more than one node."""
    number, lowest, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in sorted(uses.get(node, ())):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == number[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for node in sorted(uses):
        if node not in number:
            visit(node)
    return found


def main(build, *options):
    files = sources()
    uses, rooms, why = (collections.defaultdict(set) for _ in range(3))
    for user, used, what in [*includes(files), *calls(files, build)]:
        if user != used:
            uses[user].add(used)
        if room_of(user) != room_of(used):
            rooms[room_of(user)].add(room_of(used))
            why[room_of(user), room_of(used)].add(f"{user} uses {used} ({what})")
    if options == ("--list",):
        for room in sorted({room_of(path) for path in files}):
            print(f"| `{room}` | " + " ".join(f"`{r}`" for r in sorted(rooms[room])
                                             if not is_free(room, r)))
        return 0
    table = {room: (first, set(re.findall(r"`([a-z_/]+)`", may)))
             for room, first, may in ROW.findall((ROOT / "docs/ARCHITECTURE.md").read_text())}
    wrong = []
    for room in sorted({room_of(path) for path in files}):
        first, may = table.get(room, ("", set()))
        if not (ROOT / room / first).is_file():
            wrong.append(f"{room}: docs/ARCHITECTURE.md has no row that names a first file to read")
        for other in sorted(rooms[room] - may):
            if not is_free(room, other):
                wrong += sorted(f"{line}: {room} may not" for line in why[room, other])
    known = [line for line in (ROOT / "tests/gates/circles.list").read_text().splitlines()
             if not line.startswith("#")]
    for circle in circles(uses):
        if not set(circle) <= set(known):
            wrong.append("a circle of files: " + " ".join(circle))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"rooms.py: {len(wrong)} wrong" if wrong else f"rooms.py: ok, {len(files)} files")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:]))
