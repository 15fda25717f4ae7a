#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The walks of spans in docs/ARCHITECTURE.md, held against the code: each function of a table is
in the file that the row names (libcurl's are not), and one of the functions above it calls it, but for
those in bold.
The first one has at most 20 files and 45 functions."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_FILES, MOST_FUNCTIONS = 20, 45
ROW = re.compile(r"^\| `([\w./-]+)`[^|]*\| (.*?) \|$", re.M)


def body_of(path, name):
    """The text of a function's definition; "" if there is none."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / path).read_text(), flags=re.S)
    found = re.search(rf"^[a-zA-Z][^\n;{{}}]*\b{name}\([^;{{]*\)\s*\{{.*?^\}}", text, re.M | re.S)
    return found.group(0) if found else ""


def check(table, wrong):
    """Files and functions of one table; what is wrong with it is appended."""
    rows, above, count = ROW.findall(table), "", 0
    for path, cell in rows:
        for bold, name in re.findall(r"(\*\*)?`(\w+)`", cell):
            count += 1
            body = body_of(path, name)
            is_called = re.search(rf"\b{name}\(", above)
            if not body and not (is_called and name.startswith("curl_")):
                wrong.append(f"{path} does not define {name}")
            if not bold and not is_called:
                wrong.append(f"{path}: none of the functions before it calls {name}")
            above += body.partition("{")[2]
    return {path for path, _ in rows}, count


def main():
    page = (ROOT / "docs/ARCHITECTURE.md").read_text()
    section = page[page.index("`gate.walk` holds"):]
    tables = [part for part in section[:section.index("\n## ")].split("\n\n") if ROW.search(part)]
    wrong = [] if tables else ["docs/ARCHITECTURE.md has no walk"]
    files, count = check(tables[0], wrong) if tables else ((), 0)
    for table in tables[1:]:
        check(table, wrong)
    if len(files) > MOST_FILES or count > MOST_FUNCTIONS:
        wrong.append(f"{len(files)} files and {count} functions")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"walk.py: {len(wrong)} wrong" if wrong else f"walk.py: ok, {len(files)} files, {count} functions")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
