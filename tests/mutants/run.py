#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Changes otel-c in one place at a time, and demands that tests fail.

    tests/mutants/run.py WORK [--sample N] [--seed S] [--tests REGEX] [--bound PERCENT] ...

N mutants are drawn from the sources of places.FOLDERS; the same seed and the same sources give the same
ones, and a smaller sample is the beginning of a larger one. One build in WORK (build-mutants, for
example) has all of them. Each test runs once without a mutant, which tells the mutants that it reaches;
then each mutant runs the tests that reach it, the fastest first, until one fails or hangs. What has
been run is kept in WORK for these sources, and is not run again: an interrupted run continues, and one
with other tests runs them against what survived.

REGEX is of names as ctest has them, LABELS a regex of labels to leave out; --seconds leaves out tests
that take longer. Where REGEX names blackbox, the black-box suite is built too, against what this build
installs. --sanitize is for unit tests and examples, in a build of its own with ASan and UBSan: that is
several times slower, so run it against what survived the others. A mutant that changes no object file
is not counted, nor is one of equivalents.list (at most one in ten may be listed). The exit status is 1
when the share of killed mutants is below the bound. Needs python3-clang-14.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

import places

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
MUTANTS_MAX = 4095  # OTELI_MUTANTS_MAX of mutant.h; 0 is none
CONFIGURE = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_C_FLAGS=-w",
             "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1", "-DCMAKE_INSTALL_RPATH=$ORIGIN", "-DOTEL_WERROR=OFF")
SANITIZERS = "address,undefined"
# Folders with tests that need no program of another folder.
ALONE = {"tests/unit", "examples"}
LIMITS = ("prlimit", "--core=0", "--fsize=2147483648")
MEMORY = ("--data=8589934592",)  # not for ASan, which maps its shadow


def quietly(*command, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, stdin=subprocess.DEVNULL, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-4000:]}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def write(path, data):
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def side_by_side(jobs, function, things):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(function, things))


def one_line(text):
    return re.sub(r"\s+", " ", text)


def key(mutant):
    return mutant.file, mutant.function, mutant.operator, one_line(mutant.before), one_line(mutant.after)


class Build:
    """A copy of the sources with mutants in it, and what is built of it."""

    def __init__(self, args):
        work, self.sanitizers, self.jobs = args.work.resolve(), SANITIZERS * args.sanitize, args.jobs
        self.work, self.copy, self.tree = work, work / "source", work / ("sanitized" if args.sanitize else "build")
        self.limits = LIMITS if args.sanitize else LIMITS + MEMORY
        listed = quietly("git", "-C", SOURCES, "ls-files", "--cached", "--others", "--exclude-standard")
        self.names = sorted(name for name in listed.splitlines() if (SOURCES / name).is_file())
        tested = hashlib.sha256(str(args.seed).encode())
        product = hashlib.sha256((HERE / "places.py").read_bytes())
        for name in self.names:
            data = (SOURCES / name).read_bytes()
            if self.is_product(name):
                product.update(name.encode() + data)
            if not name.endswith((".md", "mutants/run.py", "mutants/equivalents.list")):
                tested.update(name.encode() + data)
        self.product, self.seed = product.hexdigest()[:16], args.seed
        self.state = work / tested.hexdigest()[:16]
        self.state.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def is_product(name):
        return name.endswith((".c", ".h")) and name.startswith(tuple(f"{one}/" for one in places.FOLDERS))

    def copy_sources(self):
        for path in self.copy.rglob("*"):
            if path.is_file() and str(path.relative_to(self.copy)) not in self.names:
                path.unlink()
        for name in self.names:
            if not self.is_product(name) or not (self.copy / name).exists():
                write(self.copy / name, (SOURCES / name).read_bytes())
                (self.copy / name).chmod((SOURCES / name).stat().st_mode)

    def configure(self):
        quietly("cmake", "-S", self.copy, "-B", self.tree, *CONFIGURE, f"-DOTEL_SANITIZE={self.sanitizers}")

    def commands(self):
        """How each translation unit of the product is compiled."""
        made = {}
        for entry in json.loads((self.tree / "compile_commands.json").read_text()):
            name = os.path.relpath(entry["file"], self.copy)
            if self.is_product(name) and "otel-objects" in entry["command"]:
                made[name] = entry["command"]
        return made

    def all_mutants(self):
        """Every mutant of the product in the order of this seed, which a change of the sources hardly changes."""
        kept = self.work / f"places-{self.product}.json"
        if not kept.exists():
            found, seen = {}, set()
            for name, command in sorted(self.commands().items()):
                command = command.replace(str(self.copy), str(SOURCES))
                for mutant in places.find(SOURCES, SOURCES / name, command, seen):
                    found.setdefault((mutant.file, mutant.start, mutant.end, mutant.after), mutant)
            kept.write_text(json.dumps(sorted(found.values())))
        mutants = [places.Mutant(*one) for one in json.loads(kept.read_text())]
        return sorted(mutants, key=lambda one: hashlib.sha256(repr((self.seed, *key(one))).encode()).digest())

    def compiles(self, unit):
        words = shlex.split(self.commands()[unit])
        return subprocess.run([*words[:words.index("-o")], "-fsyntax-only", self.copy / unit],
                              cwd=self.tree, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def plant(self, name, numbered):
        """Writes a file with its mutants into the copy, and returns those that compile."""
        source = (SOURCES / name).read_bytes()

        def put(some):
            write(self.copy / name, places.rewritten(source, some).encode())
            return not some or self.compiles(some[0][1].unit)

        def good_of(some):
            if put(some):
                return some
            half = len(some) // 2
            return good_of(some[:half]) + good_of(some[half:]) if half else []

        good = good_of(numbered)
        if not put(good):
            raise RuntimeError(f"{name}: mutants that compile alone and not together")
        return good

    def mutants(self, sample):
        """A build of at least so many mutants; returns those of the sample that compile, by number."""
        current, listed = self.work / "current", self.state / "mutants.json"
        built = current.read_text().split() if current.exists() else []
        if built[:1] == [self.state.name] and int(built[1]) >= sample:
            self.configure()
            chosen = json.loads(listed.read_text())
            return {number: places.Mutant(*one) for number, one in chosen if number <= sample}
        current.unlink(missing_ok=True)
        self.copy_sources()
        self.configure()
        chosen = list(enumerate(self.all_mutants()[:sample], 1))
        files = collections.defaultdict(list)
        for number, mutant in chosen:
            files[mutant.file].append((number, mutant))
        # Headers first: a header that does not compile would make its users look wrong.
        product = list(filter(self.is_product, self.names))
        headers = [self.plant(name, files[name]) for name in product if name.endswith(".h")]
        sources = side_by_side(self.jobs, lambda name: self.plant(name, files[name]),
                               [name for name in product if name.endswith(".c")])
        good = dict(one for some in headers + sources for one in some)
        listed.write_text(json.dumps(sorted(good.items())))
        for old in (self.state / "reached").glob("*"):
            old.unlink()
        current.write_text(f"{self.state.name} {sample}")
        return dict(sorted(good.items()))

    def same_object(self, mutant):
        """Whether the optimised object file is the same with and without a mutant."""
        if mutant.file != mutant.unit:
            return False
        command = self.commands()[mutant.unit].replace(str(self.copy), str(SOURCES))
        words = [one for one in shlex.split(command) if not one.startswith("-fsanitize")]
        source = (SOURCES / mutant.file).read_bytes()
        changed = b"(void)0" if mutant.operator == "statement" else f"({mutant.after})".encode()
        objects = []
        for text in (source, source[:mutant.start] + changed + source[mutant.end:]):
            made = subprocess.run([*words[:words.index("-o")], "-O2", "-g0", "-DNDEBUG", "-S", "-x", "c",
                                   f"-I{(SOURCES / mutant.file).parent}", "-", "-o", "-"], input=text,
                                  cwd=self.tree, stdout=subprocess.PIPE, check=True)
            objects.append(made.stdout)
        return objects[0] == objects[1]


class Test:
    """A test as ctest describes it."""

    def __init__(self, described):
        self.name, self.command = described["name"], described.get("command")
        self.properties = {one["name"]: one["value"] for one in described.get("properties", ())}
        self.lock = threading.Lock()  # a test may not stand a second one of itself
        self.seconds, self.reaches, self.passes = 0, set(), False

    def environment(self, mutant, reached):
        made = dict(os.environ, OTELI_MUTANTS=f"{mutant}:{reached}", MALLOC_PERTURB_="165")
        made.update(one.split("=", 1) for one in self.properties.get("ENVIRONMENT", ()))
        for one in self.properties.get("ENVIRONMENT_MODIFICATION", ()):
            made.pop(one.removesuffix("=unset:"), None)  # no test changes one in another way
        return made

    @staticmethod
    def has_failed(output):
        """Whether cmocka has said so, of one of the test's cases: the others need not be waited for."""
        return b"[  FAILED  ]" in os.pread(output.fileno(), 1 << 20, 0)

    def run(self, build, limit, mutant=0, reached=""):
        """What became of it: passed, failed, skipped or hung."""
        with self.lock, tempfile.TemporaryFile("w+", dir=build.work, encoding="utf-8",
                                               errors="replace") as output:
            with subprocess.Popen([*build.limits, *self.command], stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=output, env=self.environment(mutant, reached),
                                  cwd=self.properties["WORKING_DIRECTORY"], start_new_session=True) as child:
                status, end = None, time.monotonic() + limit
                while status is None and time.monotonic() < end and not self.has_failed(output):
                    try:
                        status = child.wait(min(limit, 0.2))
                    except subprocess.TimeoutExpired:
                        pass
                try:  # and what it has left
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.has_failed(output):
                return "failed"
            if status is None:
                return "hung"
            if status == self.properties.get("SKIP_RETURN_CODE"):
                return "skipped"
            output.seek(0)
            wanted, said = self.properties.get("PASS_REGULAR_EXPRESSION"), output.read()
            passes = any(re.search(one, said, re.S) for one in wanted) if wanted else status == 0
            return "passed" if passes else "failed"

    def outcome(self, build, mutant):
        """What became of it with a mutant; one that hangs hangs twice, for a machine may be busy for a while."""
        once = self.run(build, 3 * self.seconds + 5, mutant)
        return once if once != "hung" else self.run(build, 10 * self.seconds + 30, mutant)

    def cover(self, build, limit):
        """Runs it without a mutant, which tells how long it takes and what it reaches."""
        kept = build.state / "reached" / self.name.replace("/", "_")
        outcome, self.seconds, numbers = json.loads(kept.read_text()) if kept.exists() else ("hung", 0, ())
        limit = min(limit, float(self.properties.get("TIMEOUT", 900)))
        if outcome == "hung" and self.seconds < limit:
            kept.parent.mkdir(exist_ok=True)
            reached = kept.with_name(f".{kept.name}")
            reached.write_bytes(bytes(MUTANTS_MAX + 1))
            start = time.monotonic()
            outcome = self.run(build, limit, 0, reached)
            self.seconds = time.monotonic() - start
            numbers = [number for number, seen in enumerate(reached.read_bytes()) if seen]
            kept.write_text(json.dumps([outcome, self.seconds, numbers]))
        self.reaches, self.passes = set(numbers), outcome == "passed" and self.seconds < limit
        if outcome == "failed":
            print(f"{self.name}: fails without a mutant, and is left out", flush=True)


def chosen_tests(tree, args):
    found = map(Test, json.loads(quietly("ctest", "--test-dir", tree, "--show-only=json-v1"))["tests"])
    return [one for one in found if re.search(args.tests, one.name)
            and not any(re.search(args.without, label) for label in one.properties.get("LABELS", ()))]


def built_tests(build, args):
    """The chosen tests, after what they need has been built."""
    folders = {os.path.relpath(one.properties["WORKING_DIRECTORY"], build.tree)
               for one in chosen_tests(build.tree, args)}
    with_suite = "blackbox" in args.tests
    targets = ["all"] if with_suite or folders - ALONE else [f"{folder}/all" for folder in folders]
    quietly("cmake", "--build", build.tree, "-j", os.cpu_count(), "--target", *targets)
    found = chosen_tests(build.tree, args)
    if with_suite:
        quietly(build.copy / "tests/blackbox/run.sh", build.tree, "-N")
        found += chosen_tests(build.tree / "blackbox/build", args)
    for one in found:
        one.name += " sanitized" * bool(build.sanitizers)
    return [one for one in found if one.command]


class Results:
    """What has been run, by any run: one line of JSON each."""

    def __init__(self, path):
        self.path, self.lock, self.known, self.killers = path, threading.Lock(), {}, {}
        for line in path.read_text().splitlines() if path.exists() else ():
            self.note(*json.loads(line))

    def note(self, number, test, outcome):
        self.known[number, test] = outcome
        if outcome in ("failed", "hung"):
            self.killers[number] = test

    def get(self, number, test, find):
        """What find() says, or said once."""
        if (number, test) not in self.known:
            outcome = find()
            with self.lock, open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps([number, test, outcome]) + "\n")
            self.note(number, test, outcome)
        return self.known[number, test]

    def killer(self, build, number, tests):
        """The name of the test that finds a mutant, if one does."""
        for test in tests:
            if number not in self.killers:
                self.get(number, test.name, lambda test=test: test.outcome(build, number))
        return self.killers.get(number)

    def check(self, build, tests):
        """Forgets what was found by tests that meanwhile fail without a mutant too, and ends the run."""
        suspects = [test for test in tests if test.name in self.killers.values()]
        found = side_by_side(build.jobs, lambda test: test.outcome(build, 0), suspects)
        wrong = {test.name for test, outcome in zip(suspects, found) if outcome in ("failed", "hung")}
        if wrong:
            kept = ([*key, outcome] for key, outcome in self.known.items() if key[1] not in wrong)
            self.path.write_text("".join(json.dumps(one) + "\n" for one in kept))
            sys.exit(f"fails without a mutant too: {', '.join(wrong)}; run this again")


def equivalents():
    """Those listed: (file, function, operator, text before, text after)."""
    found = set()
    for block in (HERE / "equivalents.list").read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            fields = {word: text for word, _, text in (line.partition(" ") for line in lines)}
            found.add((*fields["mutant"].split(), fields["was"], fields["is"]))
            assert fields["why"], lines
    return found


def judge(build, mutants, tests):
    """Runs all of them; returns how each ended, by number."""
    results, listed, ends = Results(build.state / "results.jsonl"), equivalents(), {}

    def end_of(number):
        mutant, reaching = mutants[number], [test for test in tests if number in test.reaches]
        killer = results.killer(build, number, reaching)
        if killer:
            return f"killed by {killer}"
        if key(mutant) in listed:
            return "equivalent"
        if results.get(number, "same object", lambda: build.same_object(mutant)):
            return "same object"
        return f"survived {len(reaching)} tests"

    with concurrent.futures.ThreadPoolExecutor(build.jobs) as pool:
        for number, end in zip(mutants, pool.map(end_of, mutants)):
            mutant, ends[number] = mutants[number], end
            print(f"{number}: {mutant.file}:{mutant.line} {mutant.operator} {one_line(mutant.before)[:70]} => "
                  f"{one_line(mutant.after)[:70] or 'nothing'}: {end}", flush=True)
    results.check(build, tests)
    return ends


def summarise(mutants, ends, args):
    """Prints the score by folder and operator, and returns the exit status."""
    table = collections.defaultdict(lambda: [0, 0])
    kinds = collections.Counter(end.split()[0] for end in ends.values())
    for number, end in ends.items():
        if end.startswith(("killed", "survived")):
            folder = next(one for one in places.FOLDERS if mutants[number].file.startswith(one + "/"))
            for row in (f"folder {folder}", f"operator {mutants[number].operator}", "all"):
                table[row][0] += end.startswith("killed")
                table[row][1] += 1
    for row in sorted(table, key=lambda row: (row == "all", row)):
        killed, counted = table[row]
        print(f"{row}: {killed} of {counted} killed, {100 * killed / counted:.1f} %")
    left_out = kinds["equivalent"]
    print(f"not counted: {kinds['same']} with the same object, {left_out} listed as equivalent, "
          f"{args.sample - len(mutants)} that did not compile")
    if left_out * 10 > len(mutants):
        print("more than one in ten is listed as equivalent")
        return 1
    killed, counted = table["all"]
    return 1 if 100 * killed < args.bound * counted else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", default=r"^(unit|example)\.")
    parser.add_argument("--without", default="^full$")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--jobs", type=int, default=2 * os.cpu_count())
    parser.add_argument("--bound", type=float, default=0)
    args = parser.parse_args()
    build = Build(args)
    mutants = build.mutants(min(args.sample, MUTANTS_MAX))
    tests = built_tests(build, args)
    side_by_side(build.jobs, lambda test: test.cover(build, args.seconds), tests)
    tests = sorted((test for test in tests if test.passes), key=lambda test: test.seconds)
    print(f"{len(mutants)} mutants, {len(tests)} tests, {sum(test.seconds for test in tests):.0f} s", flush=True)
    ends = judge(build, mutants, tests)
    with open(build.work / "survivors.list", "w", encoding="utf-8") as file:
        for number, end in ends.items():
            if end.startswith("survived"):
                path, function, operator, before, after = key(mutants[number])
                file.write(f"# {number}, line {mutants[number].line}: {end}\nmutant {path} {function} {operator}\n"
                           f"was {before}\n{f'is {after}'.rstrip()}\nwhy\n\n")
    return summarise(mutants, ends, args)


if __name__ == "__main__":
    sys.exit(main())
