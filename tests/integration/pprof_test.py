#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Go's pprof reads our files: functions, labels, and what is chosen by labels.

    pprof_test.py PPROF_MADE PPROF_SAMPLED PPROF_PLUGIN

The samples are those of pprof_made.c: 70 in run_query_a under query=A, and 30 in run_query_b under
query=B, of 10 ms each. Those of pprof_sampled.c are real, and each label has a function of its own.
"""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77

BOTH = {"run_query_a": ("700ms", "700ms"), "run_query_b": ("300ms", "300ms"), "serve": ("0", "1000ms")}
ONLY_A = {"run_query_a": ("700ms", "700ms"), "serve": ("0", "700ms")}
ONLY_B = {"run_query_b": ("300ms", "300ms"), "serve": ("0", "300ms")}

LABELS = {
    "otel": {
        "query": {"A": "700ms", "B": "300ms"},
        "http.route": {"/a/{id}": "700ms"},
        "trace_id": {"0" * 30 + "a1": "700ms", "0" * 30 + "b1": "300ms"},
        "span_id": {"1" * 16: "700ms", "b" + "2" * 15: "300ms"},
        "local_root_span_id": {"a" + "1" * 14 + "0": "700ms", "b" + "2" * 14 + "0": "300ms"},
        "thread.name": {"pprof_made": "1s"},
    },
    "datadog": {
        "query": {"A": "700ms", "B": "300ms"},
        "trace endpoint": {"/a/{id}": "700ms"},
        "span id": {str(0x1111111111111111): "700ms", str(0xB222222222222222): "300ms"},
        "local root span id": {str(0xA111111111111110): "700ms", str(0xB222222222222220): "300ms"},
        "thread name": {"pprof_made": "1s"},
    },
    "pyroscope": {
        "query": {"A": "700ms", "B": "300ms"},
        "span_name": {"/a/{id}": "700ms"},
        "profile_id": {"a" + "1" * 14 + "0": "700ms", "b" + "2" * 14 + "0": "300ms"},
        "thread.name": {"pprof_made": "1s"},
    },
}
THREAD_ID = {"otel": "thread.id", "datadog": "thread id", "pyroscope": "thread.id"}


def find_pprof():
    """The program behind `go tool pprof`; newer Gos make it when it is asked for first."""
    places = [shutil.which("go"), "/usr/local/go/bin/go", *glob.glob("/usr/lib/go-*/bin/go")]
    go = next((place for place in places if place and os.access(place, os.X_OK)), None)
    if go is None:
        print("there is no Go (scripts/setup.sh --full-deps installs it)")
        sys.exit(SKIPPED)
    found = subprocess.run([go, "tool", "-n", "pprof"], check=True, capture_output=True, text=True,
                           cwd="/", env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""})
    return found.stdout.strip()


class Reader:
    def __init__(self, pprof, folder):
        self.pprof = pprof
        self.environment = {**os.environ, "PPROF_TMPDIR": str(folder)}

    def __call__(self, file, *arguments):
        done = subprocess.run([self.pprof, *arguments, str(file)], capture_output=True, text=True,
                              env=self.environment, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout


def make(program, folder, style="otel", names="auto"):
    before = set(folder.glob("*"))
    done = subprocess.run([program, str(folder), style, names], check=True, capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stdout
    new = set(folder.glob("*")) - before
    assert len(new) == 1, f"not one file more: {new}"
    file = new.pop()
    assert re.fullmatch(r"pprof_made-[1-9]\d*-1\.pb\.gz", file.name), file.name
    return file


def functions(text):
    """What -top says: function -> (flat, cumulative)."""
    rows = re.findall(r"^ *(\S+) +\S+% +\S+% +(\S+) +\S+% +(.+?)$", text, re.M)
    return {name: (flat, cumulative) for flat, cumulative, name in rows}


def labels(text):
    """What -tags says: key -> value -> time. That of Go 1.19, which Debian 12 has, writes 700.0ms."""
    found = {}
    for line in text.splitlines():
        head = re.match(r" *(\S.*?): Total ", line)
        row = re.match(r" *(\S+) \( *\S+%\): (.*)$", line)
        if head:
            values = found.setdefault(head[1], {})
        elif row:
            values[row[2]] = re.sub(r"\.0(?=\D)", "", row[1])
    return found


def check_functions(read, file):
    assert functions(read(file, "-top")) == BOTH
    assert functions(read(file, "-top", "-sample_index=samples")) == {
        "run_query_a": ("70", "70"), "run_query_b": ("30", "30"), "serve": ("0", "100")}
    assert "Type: cpu" in read(file, "-top")
    lines = read(file, "-top", "-lines")
    assert re.search(r"run_query_b .*pprof_made\.c:\d+$", lines, re.M), lines


def check_labels(read, file, style):
    found = labels(read(file, "-tags"))
    threads = found.pop(THREAD_ID[style])
    assert found == LABELS[style], found
    assert list(threads.values()) == ["1s"], threads
    assert list(threads) == [file.name.split("-")[1]], threads


def check_choosing(read, file):
    assert functions(read(file, "-top", "-tagfocus=query=B")) == ONLY_B
    assert functions(read(file, "-top", "-tagignore=query=B")) == ONLY_A
    assert functions(read(file, "-top", "-tagfocus=http.route=/a/")) == ONLY_A
    assert functions(read(file, "-top", "-tagfocus=span_id=" + "b" + "2" * 15)) == ONLY_B
    # A value of digits only is a number, or a range of them: the document says what helps.
    assert functions(read(file, "-top", "-tagfocus=span_id=" + "1" * 16)) == {}
    assert functions(read(file, "-top", f"-tagfocus=span_id=^{'1' * 16}$")) == ONLY_A
    rooted = functions(read(file, "-top", "-tagroot=query"))
    assert rooted["A"] == ("0", "700ms") and rooted["B"] == ("0", "300ms"), rooted


def check_traces(read, file):
    blocks = read(file, "-traces").split("-----------+")
    a = next(block for block in blocks if re.search(r"query: +A$", block, re.M))
    assert re.search(r"span_id: +1{16}$", a, re.M), a
    assert re.search(r"700ms +run_query_a\n +serve$", a, re.M), a


def check_round_trip(read, file, folder):
    again = folder / "again.pb.gz"
    read(file, "-proto", f"-output={again}")
    assert functions(read(again, "-top")) == BOTH
    assert labels(read(again, "-tags")) == labels(read(file, "-tags"))
    merged = functions(read(file, "-top", str(file)))
    assert merged == {"run_query_a": ("1400ms", "1400ms"), "run_query_b": ("600ms", "600ms"),
                      "serve": ("0", "2000ms")}, merged


def check_other_machine(read, program, folder):
    """The program is not where it ran, but somewhere else, and that is said."""
    first = folder / "first"
    second = folder / "second"
    first.mkdir()
    second.mkdir()
    copy = first / "pprof_made"
    shutil.copy2(program, copy)
    file = make(copy, folder)
    moved = second / "pprof_made"
    copy.rename(moved)
    nowhere = functions(read(file, "-top"))
    assert "run_query_a" not in nowhere, nowhere
    there = subprocess.run([read.pprof, "-top", str(moved), str(file)], check=True,
                           capture_output=True, text=True, env=read.environment)
    assert functions(there.stdout) == BOTH, there.stdout
    assert "Build ID: " in there.stdout, there.stdout


def check_nameable(read, program, folder):
    """Where the program cannot be found at all, only a file that has names shows any."""
    for names, expected in (("on", BOTH), ("off", None), ("auto", None)):
        away = folder / f"away-{names}"
        away.mkdir()
        copy = away / "pprof_made"
        shutil.copy2(program, copy)
        file = make(copy, away, "otel", names)
        copy.unlink()
        found = functions(read(file, "-top"))
        if expected:
            assert found == expected, found
        else:
            assert not set(BOTH) & set(found), found


def check_sampled(read, program, plugin, folder, source):
    """Samples of the profiler: what is under a label is in the function that ran under it."""
    out = folder / source
    out.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    environment["OTEL_TRACES_EXPORTER"] = "none"
    done = subprocess.run([program, str(out), plugin, source], check=True, capture_output=True, text=True,
                          env=environment)
    print(done.stdout, end="")
    files = [str(file) for file in out.iterdir()]
    assert files and all(file.endswith(".pb.gz") for file in files), files
    *others, file = files
    names = {"A": "run_query_a", "B": "run_query_b", "plugin": "plugin_burn"}
    for query, name in names.items():
        found = functions(read(file, "-top", "-nodefraction=0", f"-tagfocus=query=^{query}$", *others))
        assert found[name][0] != "0", f"{query}: {found}"
        assert not set(names.values()) - {name} & set(found), f"{query}: {found}"
        for caller in "otel_profile_trampoline", "run_under":
            assert found[caller][1] != "0", f"{query}: {found}"
    all_labels = labels(read(file, "-tags", *others))
    assert set(all_labels["query"]) == set(names), all_labels
    for key in "trace_id", "span_id", "local_root_span_id", "http.route":
        assert len(all_labels[key]) == 1, f"{key}: {all_labels}"
    only_a = labels(read(file, "-tags", "-tagfocus=query=^A$", *others))
    assert list(only_a["http.route"]) == ["/a/{id}"], only_a
    assert set(only_a["span_id"]) == set(all_labels["span_id"]), only_a
    only_b = labels(read(file, "-tags", "-tagfocus=query=^B$", *others))
    assert "span_id" not in only_b, only_b


def main():
    program, sampled, plugin = sys.argv[1:]
    pprof = find_pprof()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        scratch = folder / "scratch"
        scratch.mkdir()
        read = Reader(pprof, scratch)
        file = make(program, folder)
        check_functions(read, file)
        check_labels(read, file, "otel")
        check_choosing(read, file)
        check_traces(read, file)
        check_round_trip(read, file, folder)
        for style in "datadog", "pyroscope":
            check_labels(read, make(program, folder, style), style)
        check_other_machine(read, program, folder)
        check_nameable(read, program, folder)
        for source in "auto", "signal":
            check_sampled(read, sampled, plugin, folder, source)
    print("pprof reads all of it")


if __name__ == "__main__":
    main()
