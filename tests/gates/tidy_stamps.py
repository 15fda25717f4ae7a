#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What clang-tidy's opinion of a file depends on, as one number a file.

usage: tidy_stamps.py COMPILE_COMMANDS OTHER...

Prints "NUMBER PATH" for each of our sources that the database compiles. The number is of the
source, of every header of ours that it includes, directly or not, of its compiler's arguments,
and of the OTHER files (the checks that are looked for, for example). Nothing in it depends on
where the tree is, so a fresh clone knows what another has looked at.
"""
import hashlib
import json
import pathlib
import re
import sys

INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">]+)[">]', re.M)
ROOT = pathlib.Path.cwd()
PLACES = [ROOT, ROOT / "include", ROOT / "proto"]


class Files:
    """Contents and includes of files, each read once."""

    def __init__(self):
        self.known = {}

    def __call__(self, path):
        if path not in self.known:
            text = path.read_bytes()
            found = [self.find(path, name.decode()) for name in INCLUDE.findall(text)]
            self.known[path] = (hashlib.sha256(text).digest(), [at for at in found if at])
        return self.known[path]

    @staticmethod
    def find(includer, name):
        for place in [includer.parent, *PLACES]:
            path = place / name
            if path.is_file():
                return path.resolve()
        return None

    def closure(self, path):
        seen, due = set(), [path]
        while due:
            at = due.pop()
            if at not in seen:
                seen.add(at)
                due.extend(self(at)[1])
        return sorted(seen)


def arguments(entry):
    """Without what a build directory is called, and where it is."""
    command = entry.get("command") or " ".join(entry["arguments"])
    return command.replace(entry["directory"], "BUILD").replace(str(ROOT), "ROOT")


def main():
    database = json.loads(pathlib.Path(sys.argv[1]).read_text())
    common = hashlib.sha256()
    for other in sys.argv[2:]:
        common.update(pathlib.Path(other).read_bytes())
    files, numbers = Files(), {}
    for entry in database:
        path = pathlib.Path(entry["file"])
        is_ours = path.suffix != ".S" and ROOT in path.parents
        if not is_ours or path.name.endswith(".pb-c.c") or "CMakeFiles" in path.parts:
            continue
        number = numbers.setdefault(path, common.copy())
        number.update(arguments(entry).encode())
        for part in files.closure(path.resolve()):
            number.update(str(part.relative_to(ROOT)).encode() + files(part)[0])
    for path in sorted(numbers):
        print(numbers[path].hexdigest()[:40], path)


if __name__ == "__main__":
    main()
