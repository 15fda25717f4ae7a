#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file that a comment or a document names exists: by its path, or by its name alone."""
import fnmatch
import itertools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("OTEL_GATE_ROOT", pathlib.Path(__file__).resolve().parents[2]))
PATH = re.compile(r"(?<![\w/.<-])((?:api|sdk|common|config|exporters|functions|profiling|tools|tests|scripts)"
                  r"/[\w./{},*-]+\.(?:c|h|S|py|sh|pml))\b")
NAME = re.compile(r"(?<![\w/.<{*,-])([a-z]\w*\.[chS])\b(?![\"\w(>])")
OTHERS = {"shop.c", "search.h"}  # a program of the reader's; the C library's


def meant(text):
    """The paths that a text with {a,b} stands for."""
    parts = [part.split(",") for part in re.split(r"\{([^}]*)\}", text)]
    return ["".join(one) for one in itertools.product(*parts)]


def main():
    tracked = set(subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).split())
    names, wrong = {os.path.basename(path) for path in tracked} | OTHERS, []
    files = [path for path in tracked if path.endswith((".c", ".h", ".S", ".md"))
             and not path.startswith(("proto/", "tests/gates/")) and path != "CHANGELOG.md"]
    for file in sorted(files):
        for number, line in enumerate((ROOT / file).read_text(errors="replace").splitlines(), 1):
            missing = [path for text in PATH.findall(line) for path in meant(text)
                       if path not in tracked
                       and os.path.normpath(f"{os.path.dirname(file)}/{path}") not in tracked
                       and not ("*" in path and fnmatch.filter(tracked, path))]
            missing += [name for name in NAME.findall(line) if name not in names]
            wrong += [f"{file}:{number}: there is no {path}" for path in missing]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"paths.py: {len(wrong)} wrong" if wrong else f"paths.py: ok, {len(files)} files")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
