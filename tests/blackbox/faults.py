#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in a copy of the sources, one at a time, and demands that the black-box suite finds each.

    tests/blackbox/faults.py WORK [NAME...]     all faults of faults.list, or the named ones

The copy, its build and the suite's build are in WORK, for example build-faults, and are kept for the
next run. A fault whose text is no longer in its file is a failure too: write it again for the code of
today.

A fault of faults.list is six lines: `fault NAME`, `file PATH`, `test REGEX` (of the tests that have
to find it), `old TEXT`, `new TEXT` and an empty line. TEXT is one line of the file without its
indentation, and has to be there once.
"""
import os
import pathlib
import subprocess
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FIELDS = ("fault", "file", "test", "old", "new")


class Fault(dict):
    """One fault: what it is called, where it goes, who has to find it."""

    def __enter__(self):
        self.path = COPY / self["file"]
        self.kept = self.path.read_text()
        lines = self.kept.splitlines(keepends=True)
        places = [number for number, line in enumerate(lines) if line.strip() == self["old"]]
        if len(places) != 1:
            raise LookupError(f"{self['file']} has this line {len(places)} times: {self['old']}")
        line = lines[places[0]]
        lines[places[0]] = line.replace(self["old"], self["new"])
        self.path.write_text("".join(lines))
        return self

    def __exit__(self, *_):
        if self.path.read_text() != self.kept:
            self.path.write_text(self.kept)


def faults():
    for block in (SOURCES / "tests/blackbox/faults.list").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            fault = Fault(line.split(" ", 1) for line in lines)
            assert tuple(fault) == FIELDS, f"not a fault: {lines}"
            yield fault


def quietly(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        raise RuntimeError(f"failed: {' '.join(map(str, command))}")
    return done.stdout


def copy_sources():
    """The files of this tree as they are now; only what differs is written, for short builds."""
    listed = quietly("git", "-C", str(SOURCES), "ls-files", "--cached", "--others", "--exclude-standard")
    wanted = {name for name in listed.splitlines() if (SOURCES / name).is_file()}
    for path in COPY.rglob("*"):
        if path.is_file() and str(path.relative_to(COPY)) not in wanted:
            path.unlink()
    for name in wanted:
        source, target = SOURCES / name, COPY / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)


def build():
    quietly("cmake", "--build", str(PRODUCT))
    quietly("cmake", "--install", str(PRODUCT), "--prefix", str(PREFIX))
    quietly("cmake", "--build", str(SUITE))


def suite_passes(regex):
    """Whether the suite's tests of this name pass; there has to be one."""
    return subprocess.run(["ctest", "--test-dir", str(SUITE), "--no-tests=error", "-R", regex,
                           "-j", str(os.cpu_count()), "--stop-on-failure"],
                          stdout=LOG, stderr=LOG, check=False).returncode == 0


def prepare():
    COPY.mkdir(parents=True, exist_ok=True)
    copy_sources()
    quietly("cmake", "-S", str(COPY), "-B", str(PRODUCT), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DOTEL_BUILD_TESTING=OFF", "-DOTEL_BUILD_EXAMPLES=OFF", "-DOTEL_WERROR=OFF",
            "-DBUILD_SHARED_LIBS=ON")
    quietly("cmake", "--build", str(PRODUCT))
    quietly("cmake", "--install", str(PRODUCT), "--prefix", str(PREFIX))
    quietly("cmake", "-S", str(COPY / "tests/blackbox"), "-B", str(SUITE), "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={PREFIX}")
    build()


def main(names):
    chosen = [fault for fault in faults() if not names or fault["fault"] in names]
    prepare()
    for regex in sorted({fault["test"] for fault in chosen}):
        if not suite_passes(regex):
            print(f"without a fault, {regex} does not pass: see {LOG.name}")
            return 1
    wrong = 0
    for fault in chosen:
        try:
            with fault:
                build()
                found = not suite_passes(fault["test"])
        except (LookupError, RuntimeError, OSError) as bad:
            print(f"{fault['fault']}: could not be planted: {bad}")
            found = False
        wrong += not found
        print(f"{fault['fault']}: {'found by' if found else 'NOT FOUND BY'} {fault['test']}", flush=True)
    build()  # leaves nothing behind that has a fault
    print(f"{len(chosen) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    WORK = pathlib.Path(sys.argv[1]).resolve()
    COPY, PRODUCT, SUITE, PREFIX = WORK / "src", WORK / "build", WORK / "suite", WORK / "prefix"
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "ctest.log", "w", encoding="utf-8") as LOG:
        sys.exit(main(sys.argv[2:]))
