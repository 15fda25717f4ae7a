#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The walk of a span in docs/ARCHITECTURE.md, held against the code: each function of its table is
in the file that the row names, and one of the functions above it calls it, but for those in bold.
It has at most 20 files and 53 functions."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_FILES, MOST_FUNCTIONS = 20, 53


def body_of(path, name):
    """The text of a function's definition; "" if there is none."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)
    found = re.search(rf"^[a-zA-Z][^\n;{{}}]*\b{name}\([^;{{]*\)\s*\{{.*?^\}}", text, re.M | re.S)
    return found.group(0) if found else ""


def main():
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    table = page[page.index("`gate.walk` holds this table"):]
    rows = re.findall(r"^\| `([\w./-]+)`[^|]*\| (.*?) \|$", table[:table.index("\n## ")], re.M)
    wrong, above, files, count = [], "", {path for path, _ in rows}, 0
    for path, cell in rows:
        for bold, name in re.findall(r"(\*\*)?`(\w+)`", cell):
            count += 1
            body = body_of(path, name)
            if not body and not re.search(rf"\b{name}\(", above):
                wrong.append(f"{path} does not define {name}")
            if not bold and not re.search(rf"\b{name}\(", above):
                wrong.append(f"{path}: none of the functions before it calls {name}")
            above += body.partition("{")[2]
    if len(files) > MOST_FILES or count > MOST_FUNCTIONS or not rows:
        wrong.append(f"{len(files)} files and {count} functions")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"walk.py: {len(wrong)} wrong" if wrong else f"walk.py: ok, {len(files)} files, {count} functions")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
