#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults in a copy of the sources, one at a time, and demands that the black-box suite finds each.

    tests/blackbox/faults.py WORK [NAME...]     all faults of faults.list, or the named ones
    tests/blackbox/faults.py --fit              only whether all of them can be planted

One line for each fault, with its seconds; the exit status is 1 when a fault was not found. The copy,
its build and the suite's build are in WORK, for example build-faults, and are kept for the next run.
Where all were found, they are not planted again before a source changes.

A fault of faults.list is five lines and an empty one: `fault NAME`, `file PATH`, `test REGEX` (of the
tests that have to find it), `old TEXT` and `new TEXT`. TEXT is part of a line, and has to be in the
file once: where it is no longer, nothing is run, and the fault is to be written again for the code
of today.
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import time

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FIELDS = ("fault", "file", "test", "old", "new")


class Fault(dict):
    """One fault: what it is called, where it goes, who has to find it."""

    def __enter__(self):
        self.path = COPY / self["file"]
        self.kept = self.path.read_text()
        self.path.write_text(self.kept.replace(self["old"], self["new"]))

    def __exit__(self, *_):
        self.path.write_text(self.kept)

    def misfit(self):
        """Why it cannot be planted, if that is so."""
        times = (SOURCES / self["file"]).read_text().count(self["old"])
        return None if times == 1 else f"{self['fault']}: {self['file']} has this {times} times: {self['old']}"


def faults():
    for block in (SOURCES / "tests/blackbox/faults.list").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            fault = Fault(line.split(" ", 1) for line in lines)
            assert tuple(fault) == FIELDS, f"not a fault: {lines}"
            yield fault


def misfits():
    return list(filter(None, map(Fault.misfit, faults())))


def quietly(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        print(done.stdout[-4000:])
        raise RuntimeError(f"failed: {' '.join(map(str, command))}")
    return done.stdout


def copy_sources():
    """The files of this tree as they are now; only what differs is written, for short builds. Their hash."""
    listed = quietly("git", "-C", str(SOURCES), "ls-files", "--cached", "--others", "--exclude-standard")
    wanted = {name for name in listed.splitlines() if (SOURCES / name).is_file()}
    for path in COPY.rglob("*"):
        if path.is_file() and str(path.relative_to(COPY)) not in wanted:
            path.unlink()
    whole = hashlib.sha256()
    for name in sorted(wanted):
        source, target = SOURCES / name, COPY / name
        whole.update(name.encode() + b"\n" + source.read_bytes())
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    return whole.hexdigest()


def build():
    quietly("cmake", "--build", str(PRODUCT))
    quietly("cmake", "--install", str(PRODUCT), "--prefix", str(PREFIX))
    quietly("cmake", "--build", str(SUITE))


def suite_passes(regex):
    """Whether the suite's tests of this name pass; there has to be one."""
    return subprocess.run(["ctest", "--test-dir", str(SUITE), "--no-tests=error", "-R", regex,
                           "-j", str(os.cpu_count()), "--stop-on-failure", "--output-on-failure"],
                          stdout=LOG, stderr=LOG, check=False,
                          env=dict(os.environ, BLACKBOX_FAIL_FAST="1")).returncode == 0


def prepare():
    quietly("cmake", "-S", str(COPY), "-B", str(PRODUCT), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DOTEL_BUILD_TESTING=OFF", "-DOTEL_BUILD_EXAMPLES=OFF", "-DOTEL_WERROR=OFF",
            "-DBUILD_SHARED_LIBS=ON")
    quietly("cmake", "--build", str(PRODUCT))
    quietly("cmake", "--install", str(PRODUCT), "--prefix", str(PREFIX))
    quietly("cmake", "-S", str(COPY / "tests/blackbox"), "-B", str(SUITE), "-G", "Ninja",
            "-DCMAKE_LINK_DEPENDS_NO_SHARED=ON", f"-DCMAKE_PREFIX_PATH={PREFIX}")
    build()


def main(names):
    known = list(faults())
    bad = [*misfits(),
           *(f"no such fault: {name}" for name in names if name not in [fault["fault"] for fault in known])]
    if bad:
        print("\n".join(bad))
        return 1
    chosen = [fault for fault in known if not names or fault["fault"] in names]
    COPY.mkdir(parents=True, exist_ok=True)
    sources = copy_sources()
    if FOUND.exists() and FOUND.read_text() == sources:
        print(f"{len(chosen)} found before in the same sources")
        return 0
    prepare()
    if not suite_passes("|".join({fault["test"] for fault in chosen})):
        print(f"a test fails without a fault: see {LOG.name}")
        return 1
    missed = 0
    for fault in chosen:
        begun = time.monotonic()
        with fault:
            build()
            is_found = not suite_passes(fault["test"])
        missed += not is_found
        print(f"{'found' if is_found else 'NOT FOUND'} by {fault['test']}, "
              f"{time.monotonic() - begun:.0f} s: {fault['fault']}", flush=True)
    build()  # leaves nothing behind that has a fault
    print(f"{len(chosen) - missed} found, {missed} not found")
    if not missed and chosen == known:
        FOUND.write_text(sources)
    return 1 if missed else 0


if __name__ == "__main__":
    if sys.argv[1] == "--fit":
        sys.exit("\n".join(misfits()) or 0)
    WORK = pathlib.Path(sys.argv[1]).resolve()
    COPY, PRODUCT, SUITE, PREFIX = WORK / "src", WORK / "build", WORK / "suite", WORK / "prefix"
    FOUND = WORK / "all-found-in"
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "ctest.log", "w", encoding="utf-8") as LOG:
        sys.exit(main(sys.argv[2:]))
