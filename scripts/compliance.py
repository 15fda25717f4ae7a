#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/COMPLIANCE.md from tests/spec/rows.txt and the tests.

    scripts/compliance.py            write it
    scripts/compliance.py --check    say what is wrong with it, and with the rows; exit 1 if anything

A test belongs to a row when a comment of it says so: "spec: A15 ...", right above a test function
in C, or anywhere in a script, a model or a CMakeLists.txt.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = ROOT / "tests" / "spec" / "rows.txt"
DOCUMENT = ROOT / "docs" / "COMPLIANCE.md"
MARK = re.compile(r"\bspec:\s+((?:[A-Z]\d+|E-[A-Z0-9_]+)(?:[ ,]+(?:[A-Z]\d+|E-[A-Z0-9_]+))*)\b")
ROW_NAME = re.compile(r"[A-Z]\d+|E-[A-Z0-9_]+")
FUNCTION = re.compile(
    r"^(?:__attribute__\(\(.*\)\)\s)?(?:TEST(?:_WITH\(\w+,\s+\w+,\s+|\w*\()|(?:static )?(?:void|int|bool)\s+)(\w+)",
    re.M)

HEAD = """# Compliance with the OpenTelemetry specification

Written by `scripts/compliance.py` from [tests/spec/rows.txt](../tests/spec/rows.txt) and the tests; do not edit.

What otel-c does of the [OpenTelemetry specification](https://github.com/open-telemetry/opentelemetry-specification/tree/v1.60.0), **version 1.60.0**, for tracing.
A row passes when the tests beside it pass, and they all run in `scripts/test.sh` and `scripts/test.sh --full`. *Development* is the specification's own word for what may still change there.
"""


class Row:
    def __init__(self, fields, section):
        self.name, self.level, self.stability, self.reference, self.what, self.reason = fields
        self.section = section
        self.tests = []


def read_rows():
    rows, section = {}, ""
    for number, line in enumerate(ROWS.read_text().splitlines(), 1):
        if line.startswith("="):
            section = line[1:].strip()
        elif line and not line.startswith("#"):
            fields = [field.strip() for field in line.split("|")]
            if len(fields) == 5:
                fields.append("")
            if len(fields) != 6:
                sys.exit(f"{ROWS}:{number}: {len(fields)} fields")
            rows[fields[0]] = Row(fields, section)
    return rows


def test_name(path, text, position):
    """What the test at this place in a file is called."""
    if path.suffix == ".c":
        match = FUNCTION.search(text, position)
        if match is None:
            return None
        name = match.group(1)
        if name == "main":
            return str(path.relative_to(ROOT))
        return f"{path.relative_to(ROOT)}: {name.removeprefix('test_').replace('_', ' ')}"
    return str(path.relative_to(ROOT))


def find_tests(rows):
    faults = []
    paths = [path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*")]
    for path in sorted(paths):
        if path.suffix not in {".c", ".sh", ".py", ".mjs", ".pml", ".txt"} or path == ROWS:
            continue
        text = path.read_text(errors="replace")
        for mark in MARK.finditer(text):
            line = text.count("\n", 0, mark.start()) + 1
            test = test_name(path, text, mark.end())
            for name in ROW_NAME.findall(mark.group(1)):
                if name not in rows:
                    faults.append(f"{path.relative_to(ROOT)}:{line}: there is no row {name}")
                elif test is None:
                    faults.append(f"{path.relative_to(ROOT)}:{line}: no test behind this comment")
                elif test not in rows[name].tests:
                    rows[name].tests.append(test)
    return faults


def escape(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def status(row):
    if row.reason:
        return "left out" if not row.tests else "in part"
    return "passes" if row.tests else "**missing**"


def how(row):
    tests = "<br>".join(f"`{escape(test)}`" for test in row.tests)
    return "<br>".join(part for part in (escape(row.reason), tests) if part)


def render(rows):
    lines = [HEAD]
    for section in dict.fromkeys(row.section for row in rows.values()):
        lines += [f"## {section}\n",
                  "| | asks | level | where | | how it is known |", "|---|---|---|---|---|---|"]
        for row in rows.values():
            if row.section != section:
                continue
            level = row.level + (", development" if row.stability == "development" else "")
            lines.append(f"| {row.name} | {escape(row.what)} | {level} | {escape(row.reference)} "
                         f"| {status(row)} | {how(row)} |")
        lines.append("")
    return "\n".join(lines)


def main():
    rows = read_rows()
    faults = find_tests(rows)
    faults += [f"tests/spec/rows.txt: {row.name} has neither a test nor a reason"
               for row in rows.values() if not row.tests and not row.reason]
    document = render(rows)
    if "--check" in sys.argv[1:]:
        if not DOCUMENT.exists() or DOCUMENT.read_text() != document:
            faults.append("docs/COMPLIANCE.md: not what scripts/compliance.py writes")
    else:
        DOCUMENT.write_text(document)
    for fault in faults:
        print(fault)
    counts = [status(row) for row in rows.values()]
    print(f"compliance.py: {len(rows)} rows, " +
          ", ".join(f"{counts.count(word)} {word.strip('*')}" for word in dict.fromkeys(counts)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
